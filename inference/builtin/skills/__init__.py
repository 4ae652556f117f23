"""One skill per file: each adds turns of one kind to a scene, with the answers it calls right."""
