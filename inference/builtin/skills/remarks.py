"""Things people just say: what they did, saw or think, with nothing asked."""
# ruff: noqa: E501 - patterns read best whole

from inference.builtin.scene import Scene, a

ANSWER = "Thank you for telling me."
_REMARKS = (
    "(today|yesterday|this morning|last week|last night|on Monday) (I|we|my friend|my sister|my boss) {past} {an} [in {c}].", "(I|we) {past} {an} (today|yesterday|this morning|last week|in {c}|with {m}).",
    "(did you know that|I heard that|I read that|it seems that|I think that|they say that) {m} {past} {an} [?]", "(guess what|you know what|imagine), (I|we|{m}) {past} {an} (today|yesterday|last night).",
    "(there is|there was|I saw|I found|we saw) {an} (in my garden|on my desk|in {c}|on the street|in the kitchen).", "(my|our) {n} is (very|so|quite|really) {adj} [today|now].",
    "(I am|I'm|we are) (at work|in {c}|on the train|at home|in a meeting|on holiday|waiting for {m}|having lunch|learning to cook|reading a book) [now|right now|today].",
    "(I|we) (went|drove|walked|flew|moved) to {c} (yesterday|last week|last year|today|with {m}).", "(I|we) (had|ate|cooked|made|bought) {f} (for lunch|for dinner|today|yesterday|for breakfast).",
    "{m} (and I|and my brother|and {k}) {past} {an}.", "(it is|it was|it's) (Monday|late|raining|snowing|my birthday|a long day|a {adj} day) [today|here].", "(I think|I believe|in my opinion) {f} (are|is) (tasty|overrated|great|not for me|the best).",
)  # fmt: skip


def remarks(scene: Scene) -> None:
    """A remark and a short thank-you."""
    words = scene.words
    scene.ask(_REMARKS, past=words.choice("VERBS").split(":")[1], an=a(words.noun()), n=words.noun(), c=words.city(), m=words.first_name(),
              k=words.first_name(), adj=words.choice("ADJECTIVES"), f=words.choice("FOODS"))  # fmt: skip
    scene.about(None, "Small talk")
    scene.answer(ANSWER)
