"""What transformers calls the parts of models that see. No torch here."""

TEXT_PARTS = ("language_model", "text_model")
"""What reads tokens."""

TOWERS = ("vision_tower", "vision_model")  # that take images in tiles
EYES = (*TOWERS, "visual", "multi_modal_projector", "connector")
"""What images go through, up to rows of a prompt."""
