"""Sentences of fact about made-up subjects, with questions that they answer: matter for passages.

A `Statement` is one sentence. A question is answered by the sentence that speaks of the same
subject and the same matter; others about the same subject, or the same matter elsewhere, distract.
"""
# ruff: noqa: E501 - patterns read best whole

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from inference.builtin import lexicon
from inference.builtin.phrasing import MORE, UNSCORED, expand, fill_from
from inference.builtin.scene import a, capitalised
from inference.builtin.words import Words, plural


@dataclass(frozen=True, slots=True)
class Family:
    """One matter that can be stated of a subject. `{s}` is the subject in both patterns."""

    says: tuple[str, ...]
    asks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence, with the patterns and values of the questions that it answers."""

    sentence: str
    asks: tuple[str, ...]
    values: Mapping[str, object]
    subject: str
    family: int


def _f(says: str, *asks: str) -> Family:
    return Family(tuple(says.split(" / ")), asks)


PRODUCT = (
    _f("The {s} costs {money}. / The price of the {s} is {money}. / A {s} is sold for {money}.", "(how much|what) does the {s} cost?", "(what is|what's) the price of the {s}?", "how expensive is the {s}?", "how much is the {s}?", "how much do I (pay|have to pay) for the {s}?", MORE, "how much (must I|do I|would I|should I) pay (for|to get|to buy) [the|a] {s}?", "what do I (have to|need to) pay for the {s}?", "what price does the {s} have?", "how much (do they want|is asked) for the {s}?"),
    _f("The {s} weighs {weight}. / The weight of the {s} is {weight}.", "how (heavy is|much does) the {s} [weigh]?", "(what is|what's) the weight of the {s}?", "what does the {s} weigh?", MORE, "how (many pounds|many kilograms|many grams) does the {s} weigh?", "what weight does the {s} have?"),
    _f("The warranty of the {s} lasts {span}. / The {s} comes with a warranty of {span}.", "how long (is|does) the warranty of the {s} [last]?", "what warranty does the {s} (have|come with)?", "(what is|how long is) the warranty (of|for|on) the {s}?", MORE, "(how long|for how long) (am I covered|is it covered) by the warranty of the {s}?", "how long a warranty does the {s} have?"),
    _f("The battery of the {s} lasts {span}. / The {s} runs for {span} on one battery charge.", "how long does the battery of the {s} last?", "(what is|how good is) the battery life of the {s}?", "how long does the {s} run on (one|a) battery [charge]?", MORE, "(how long|how many hours) (does|will|can) the {s} (run|work|last) (on its battery|on a charge|without a charger)?", "how long (is|lasts) the battery life of the {s}?", "(how long|for how long) (will|can) the battery of the {s} last?"),
    _f("The {s} is made of {material}. / The housing of the {s} is made of {material}.", "what is the {s} made of?", "(what|which) material is the {s} made of?", "of (what|which) material is the {s} [made]?", MORE, "(out of what|from what|of what) is the {s} (made|built)?", "what is the (material|housing) of the {s}?"),
    _f("The {s} is available in {colour} and {colour2}. / The {s} comes in {colour} and {colour2}.", "(what|which) colours (does the {s} come|is the {s} available) in?", "in (what|which) colours (can I get|is) the {s} [available]?", MORE, "(what|which) colours (are there|do you have|can I choose) (for|of) the {s}?", "does the {s} come in several colours?", UNSCORED, "in (what|which) (colour|colours) (can we buy|can one buy|do they make|do they sell|could I buy|may I order) the {s}?", "(what|which) (colour|colours) can (I|we|one) (get|buy|have|order) the {s} in?", "(in how many|in what) colours is there the {s}?"),
    _f("The {s} was designed by {person}. / {person} designed the {s}.", "who designed the {s}?", "(who is|what is the name of) the designer of the {s}?", "by whom was the {s} designed?", MORE, "(who|which person|which designer) (drew|made|created|is behind) the {s}?", "(which|what) person designed the {s} [at first]?", "whose design is the {s}?", UNSCORED, "(which|what) person (drew|is behind|thought up|invented|came up with|created) the {s}?", "who (thought up|came up with|drew up|invented) the {s}?", "(which|what) (artist|engineer|man or woman) (made|drew|created) the {s}?"),
    _f("The {s} is built in {city}. / The factory in {city} builds the {s}.", "where is the {s} (built|made)?", "in (which|what) (city|town) is the {s} built?", "(what|which) city builds the {s}?", MORE, "in (which|what) (city|town|place) (do they build|do they make) the {s}?", "(which|what) (town|place) (builds|makes) the {s}?", "where does the {s} come from?"),
    _f("The {s} can carry {weight}. / The {s} holds up to {weight}.", "how much can the {s} (carry|hold)?", "what (load|weight) can the {s} (carry|hold)?", "how much weight does the {s} (carry|hold)?", MORE, "(what|which|how much) (load|weight) is (possible|allowed) (on|for|with) the {s}?", "how heavy a load can the {s} (carry|hold)?"),
    _f("The {s} must be cleaned every {span}. / Clean the {s} every {span}.", "how often (must|should) the {s} be cleaned?", "how often (do|must|should) I clean the {s}?", "when (must|should) (I clean the {s}|the {s} be cleaned)?", MORE, "how (many times|frequently) (must|should) the {s} be cleaned?", "how often does the {s} (need|want) cleaning?"),
    _f("To reset the {s}, press the {adj} {thing} for {n} seconds. / The {s} is reset by holding the {adj} {thing} for {n} seconds.", "how (do|can) I reset the {s}?", "how is the {s} reset?", "what (must I do|do I do) to reset the {s}?", MORE, "how (would|might|should|could) I (reset|restart) the {s}?", "(what|which) button resets the {s}?", "how do I (restart|reset) (a|my|the) {s}?"),
    _f("The {s} needs a {thing} to work. / The {s} works only with a {thing}.", "what does the {s} need [to work]?", "what (do I need|is needed) (for|to use) the {s}?", MORE, "what (is|are) (needed|required) to (run|work|use|start) the {s}?", "what does (the|a) {s} require?", "what do I need to (use|run|work) the {s}?", UNSCORED, "what (things are|is it that is|else is|would be) (needed|required) (to work|for|by) the {s}?", "what (would|might|will|must) (a|the) {s} (require|need) [to work]?", "(which|what) (part|thing) does (a|the) {s} (require|need)?", "what is required (by|for) (a|the) {s}?"),
    _f("The {s} was released in {month} {year}. / Sales of the {s} began in {month} {year}.", "when (was the {s} released|did sales of the {s} begin)?", "(what is|what was) the release date of the {s}?", "when did the {s} come out?", MORE, "(what is|what was|what's) the (date|month) (of the release|of release) of the {s}?", "(in what|in which) (month|year) (was the {s} released|did the {s} come out)?", "since when is the {s} (sold|available|out)?"),
    _f("The maximum speed of the {s} is {n} kilometres per hour. / The {s} reaches {n} kilometres per hour.", "how fast (is the {s}|does the {s} go|can the {s} go|will the {s} go) [at most]?", "(what is|what's) the (maximum|top) speed of the {s}?", "what speed does the {s} reach?", MORE, "how (quick|fast) (is|can) the {s} [be]?", "(what is|what's) the highest speed of the {s}?", "how many kilometres per hour does the {s} (reach|make)?", UNSCORED, "how (quick|quickly|swift) (could|does|will) the {s} (be|go|run|drive|move) [at most]?", "how (swift|rapid|speedy) is the {s}?", "is the {s} quick, and how quick?", "at what speed does the {s} (go|run|move)?"),
)  # fmt: skip
COMPANY = (
    _f("{s} was founded in {year}. / {s} has existed since {year}.", "when was {s} founded?", "since when (has|does) {s} (existed|exist)?", "(what|which) year was {s} founded [in]?", "how old is {s}?", MORE, "in (what|which) year (was {s} founded|did {s} start|did {s} begin)?", "when did {s} (start|begin|come into being)?", UNSCORED, "since (what year|which year|what time) (does|has) {s} (exist|existed|been there)?", "since when (is there|do we have|do they have|have they had) {s}?", "(for how many years|how long) (does|has) {s} (exist|existed)?", "from when on (does|did|has) {s} (exist|existed)?"),
    _f("{s} was founded by {person}. / {person} founded {s}. / The founder of {s} is {person}.", "who founded {s}?", "(who is|who was|what is the name of) the founder of {s}?", "by whom was {s} founded?", MORE, "(what is|what was|what's) the (name|full name) of (the founder|the one who founded) [of] {s}?", "(which|what) person (founded|started|set up) {s}?", "who (started|set up|created) {s}?", UNSCORED, "(what is|what's|tell me) the (name|full name) of the (man or woman|person|one) who founded {s}?", "(say|give me|tell me|I need) the name of the founder of {s}.", "what (was|would be|might be) the founder of {s} called?", "how is the founder of {s} (called|named)?"),
    _f("{s} has {n} employees. / About {n} people work at {s}.", "how many (employees does {s} have|people work (at|for) {s})?", "how (large|big) is the staff of {s}?", "(what is|what's) the number of employees of {s}?", MORE, "how many (people|persons|men and women) (work for|work with|are employed by) {s}?", "how many (workers|colleagues) (does {s} have|are there at {s})?"),
    _f("The head office of {s} is in {city}. / {s} has its head office in {city}.", "where is the head office of {s}?", "in (which|what) (city|town) is the head office of {s}?", "where does {s} have its [head] office?", "where is {s} based?", MORE, "where does {s} have its (main office|seat|offices)?", "(in which|in what) (city|town|place) (is {s} based|does {s} have its office)?", "where (is|lies) the (main|central) office of {s}?"),
    _f("{s} makes {things} and {things2}. / {s} is known for {things} and {things2}.", "what does {s} make?", "what is {s} known for?", "(what|which) products does {s} make?", MORE, "(what's|what is|what was) {s} (known|famous|well known) for?", "what (is made|is produced) by {s}?", "what (goods|things|products) does {s} (make|sell|produce)?"),
    _f("The director of {s} is {person}. / {s} is led by {person}.", "who (leads|runs|is the director of|is the head of) {s}?", "(what is|what's) the name of the director of {s}?", "by whom is {s} led?", MORE, "(who|which person) (directs|heads|manages) {s}?", "who is (the boss|the chief|in charge) (of|at) {s}?", "(which|what) person leads {s}?", UNSCORED, "(who|what person|which director) (is heading|is at the head of|stands at the head of|directs) {s}?", "(which|what) (man or woman|manager|director) (heads|leads|directs) {s}?", "who (heads up|is it that heads|would head) {s}?", "(which|what) person (directs|runs|manages|is in charge of|is the head of) {s}?"),
    _f("The office of {s} opens at {time}. / {s} opens its doors at {time}.", "when does (the office of|) {s} open [its doors]?", "at (what|which) (time|hour) does {s} open?", "(what are|what is) the opening (hours|time) of {s}?", MORE, "(from when|since when|from what time) is (the office of|) {s} open?", "(how early|when) can I (come|go) to {s}?"),
    _f("{s} can be reached at {phone}. / The phone number of {s} is {phone}.", "(what is|what's) the phone number of {s}?", "how can I (reach|call|contact) {s}?", "(what|which) number does {s} have?", MORE, "(what's|what is|which is|give me) the (phone number|telephone number|number) of {s} [please]?", "(how do I|how can I|how could I|how may I) (call|phone|ring|reach|contact|get hold of) {s}?", "(what|which|on what|under which|at which) (number|phone number|telephone number) (do I call|does {s} have|can I reach {s})?"),
    _f("Employees of {s} get {n} days of holiday. / At {s} everyone has {n} days of holiday.", "how many (days of holiday|holidays|holiday days) do employees of {s} (get|have)?", "how (much|long) holiday (do people|does everyone) get at {s}?", MORE, "how many (free days|days off) (do people|does everyone|do employees) (get|have) at {s}?", "how many days of holiday (are there|does one get) at {s}?"),
    _f("The notice period at {s} is {span}. / {s} has a notice period of {span}.", "(what is|how long is) the notice period at {s}?", "how long is the notice [period] at {s}?", MORE, "how long is the (notice|period of notice) (at|of|in) {s}?", "how (long|much) notice (must I give|do I have to give|is there) at {s}?", "what notice (period|time) does {s} have?"),
    _f("{s} made a profit of {money} in {year}. / In {year}, {s} earned {money}.", "how much (profit did {s} make|did {s} earn) [in {year}]?", "(what was|how large was) the profit of {s} [in {year}]?", MORE, "how much did {s} (earn|make|gain) (in {year}|in that year|back then|)?", "how much money did {s} (earn|make) [in {year}]?", "what did {s} earn [in {year}]?", "what profit did {s} (make|have) [in {year}]?", UNSCORED, "how much (has|had) {s} (earned|made|gained) [in {year}]?", "how much (was earned|was made|was gained) by {s}?", "(what sum|how many euros|how much money) did {s} (gain|take in)?", "what (were|was) the (earnings|gain) of {s} [in {year}]?"),
    _f("The motto of {s} is to {verb} every {thing}. / {s} promises to {verb} every {thing}.", "(what is|what's) the motto of {s}?", "what does {s} promise?", MORE, "(what is|what's|what was|which is|tell me) (the|its) (motto|promise|slogan) (of|at) {s}?", "(what|which) motto does {s} have?", "what (does|did) {s} (promise|say it does)?", UNSCORED, "(what is|what's|which is) the (slogan|watchword|promise|saying) that {s} (has|uses|goes by)?", "(which|what) (slogan|watchword|promise) does {s} (have|use|go by|live by)?", "the (slogan|motto|promise) (of|at) {s}, what is it?", "with (what|which) (slogan|motto) does {s} (work|advertise)?", "what (would|might|will) {s} (say that it does|claim to do|promise to do)?", "what does {s} (claim|claim to do|tell us it does|say that it does|swear to do)?"),
)  # fmt: skip
PERSON = (
    _f("{s} was born in {city}. / The birthplace of {s} is {city}.", "where was {s} born?", "in (which|what) (city|town|place) was {s} born?", "(what is|what was) the birthplace of {s}?", MORE, "(at|in) (which|what) (place|city|town) (did {s} come into the world|was {s} born)?", "where (is {s} from|does {s} come from)?", UNSCORED, "(at|in) (which|what) (place|city|town) did {s} (see the light of day|enter the world|first see the world|begin life)?", "where did {s} (come into the world|enter the world|see the light of day|begin life)?"),
    _f("{s} works as {a_job}. / By profession, {s} is {a_job}.", "what does {s} (do|work as) [for a living]?", "(what is|what's) the (job|profession) of {s}?", "what (job|profession) does {s} have?", MORE, "(what is|what's) {s} (by profession|by trade)?", "what (kind of|sort of) (job|work) does {s} (have|do)?"),
    _f("{s} lives in {city} with {n} {animals}. / Home for {s} is {city}, together with {n} {animals}.", "where does {s} live?", "(in which|in what) (city|town) does {s} live?", "where is (home for {s}|the home of {s})?", MORE, "(at|in) (which|what) (place|city|town) (does {s} live|is the home of {s})?", "where (is|was) the (home|house) of {s}?", "how many {animals} does {s} (have|live with)?", "who lives in {city}?"),
    _f("{s} plays the {instrument}. / Every evening {s} plays the {instrument}.", "(what|which) instrument does {s} play?", "what does {s} play?", MORE, "(which|what) (kind of instrument|instrument|musical instrument) (does|did|can) {s} play [every evening]?", "(on which|on what) instrument does {s} play?"),
    _f("The office of {s} is room {code}. / {s} sits in room {code}.", "(where|in which room) (is the office of {s}|does {s} sit)?", "(what|which) room is {s} in?", "where (can I|do I) find {s}?", MORE, "(where|in what room|in which room) (does|did) {s} (sit|work|have an office)?", "(what|which) (room|office) does {s} (sit in|have)?", "where is {s} (sitting|to be found)?"),
    _f("{s} can be reached at {phone}. / The phone number of {s} is {phone}.", "(what is|what's) the phone number of {s}?", "how can I (reach|call|contact) {s}?", "(what|which) number does {s} have?", MORE, "(what's|what is|which is|give me) the (phone number|telephone number|number) of {s} [please]?", "(how do I|how can I|how could I|how may I) (call|phone|ring|reach|contact|get hold of) {s}?", "(what|which|on what|under which|at which) (number|phone number|telephone number) (do I call|does {s} have|can I reach {s})?"),
    _f("{s} studied {topic} at the university of {city}. / At the university of {city}, {s} studied {topic}.", "what did {s} study?", "(what|which) subject did {s} study?", "where did {s} study?", MORE, "(which|what) (subject|field) did {s} (study|learn)?", "(at which|at what) university did {s} study?"),
    _f("The favourite food of {s} is {food}. / {s} likes {food} best.", "(what is|what's) the (favourite|favorite) food of {s}?", "what does {s} like [best]?", "(what|which) food does {s} like [best]?", MORE, "(what|which) (food|meal|dish) (is liked best by|is the favourite of) {s}?", "what does {s} (prefer|love) to eat?"),
    _f("{s} joined the team in {month} {year}. / Since {month} {year}, {s} has been part of the team.", "when did {s} join [the team]?", "since when has {s} been (part of|in|on) the team?", MORE, "when did {s} (come to|get into|become part of|join) (the team|us)?", "how long has {s} been (in|on|part of) the team?", UNSCORED, "when (was|is) it that {s} (became|came to be|got to be) part of the team?", "when did {s} (turn into|get to be|become) (a member|a member of the team|one of us|one of the team)?", "(on what date|in which month|in which year) did {s} become (part of|a member of) the team?", "when has {s} become part of (us|the team)?"),
    _f("{s} is responsible for the {adj} {things}. / The {adj} {things} are looked after by {s}.", "what is {s} responsible for?", "what does {s} look after?", "(what are|what is) the (tasks|task|duty) of {s}?", MORE, "what (is|was|would be) {s} (responsible for|in charge of)?", "what (tasks|duties|things) does {s} have?"),
    _f("{s} won the {adj} {thing} prize in {year}. / In {year}, {s} won the {adj} {thing} prize.", "(what|which) prize did {s} win?", "when did {s} win (a|the) prize?", "what did {s} win?", MORE, "(in which|in what) year did {s} win (a|the|that) prize?", "when (did {s} win|was {s} given) (a|the|that) prize?", "(for which|what) prize was {s} given?"),
    _f("{s} is married to {person}. / In {year}, {s} married {person}.", "(who|whom) (is {s} married to|did {s} marry)?", "who is the (husband|wife|partner) of {s}?", MORE, "whose (husband|wife|partner) is {s}?", "who is (the husband of|the wife of|the spouse of|the man of|the woman of) {s} [now]?", "(whom|who) has {s} married?", "who is {s} (married|engaged|wed) to?", "(is {s} married|has {s} a husband|has {s} a wife), and to whom?", UNSCORED, "who is the (better half|man|woman|spouse) (beside|at the side of|by the side of) {s}?", "(which man|which woman|which person) is {s} (married to|wed to)?", "(what is|what's) the name of the (husband|wife|man|woman|spouse|partner) of {s}?"),
)  # fmt: skip
PLACE = (
    _f("The {s} opens at {time}. / The doors of the {s} open at {time}.", "when does the {s} open?", "at (what|which) (time|hour) does the {s} open?", "(what is|what are) the opening (hours|time) of the {s}?", MORE, "(from when|since when|from what time) is the {s} open?", "how early does the {s} open?", UNSCORED, "(at what hour|at which time|how early|when) (do|are) the doors of the {s} (open|opened)?", "when (do they|will they) (open|open up) the {s}?", "when does the {s} (open up|let people in|let visitors in|let us in)?"),
    _f("The {s} closes at {time}. / At {time} the {s} closes.", "when does the {s} close?", "at (what|which) (time|hour) does the {s} close?", "(what is|what's) the closing time of the {s}?", "until when is the {s} open?", MORE, "(at|until) (what|which) (hour|time) (is the {s} open|does the {s} shut|does the {s} close)?", "(what's|what is|when is) the (closing time|closing hour|end) of the {s}?", "when does the {s} (shut|end)?"),
    _f("A ticket for the {s} costs {money}. / Entry to the {s} costs {money}.", "how much (is|does) (a ticket for|entry to) the {s} [cost]?", "(what is|what's) the (entry fee|ticket price) of the {s}?", "what does (a ticket for|entry to) the {s} cost?", MORE, "how much do I pay (for a ticket|for entry|to get in) (for|to|at) the {s}?", "(what|which) (price|fee) (does a ticket for|does entry to) the {s} have?"),
    _f("The {s} was built in {year}. / Workers built the {s} in {year}.", "when was the {s} built?", "in (what|which) year was the {s} built?", "how old (is the {s}|would the {s} be|must the {s} be) [now|today]?", MORE, "(since when|since what year) does the {s} (stand|exist)?", "when did (workers|they) build the {s}?", UNSCORED, "how old (might|could|will|may|can) the {s} be [now|today|by now]?", "(what is|what's) the age of the {s} [now|today]?", "how many years old (is|would be) the {s} [now]?"),
    _f("The {s} is {n} metres tall. / The height of the {s} is {n} metres.", "how (tall|high) is the {s}?", "(what is|what's) the height of the {s}?", MORE, "(what is|what's|which is|what was) the (height|size) of the {s}?", "how many metres (high|tall) is the {s}?", "what height does the {s} have?", UNSCORED, "what (size|height) (is|was|would be) the {s}?", "(say|tell me|give me) the (size|height) of the {s}.", "(how big|how large) (is|was|would be) the {s}?", "(which|what) (size|height) does the {s} (have|reach)?", "what (could be|may be|might be) the (size|height) of the {s}?"),
    _f("The {s} stands in {city}. / You can find the {s} in {city}.", "where (is|stands) the {s}?", "in (what|which) (city|town) is the {s}?", "where (can I|do I) find the {s}?", MORE, "in (which|what) (city|town|place) (does the {s} stand|can I find the {s}|is the {s})?", "where (is|was|stands) the {s} [to be found|exactly]?", "where does the {s} stand?"),
    _f("The {s} has room for {n} visitors. / Up to {n} visitors fit into the {s}.", "how many (visitors|people) fit into the {s}?", "how many visitors does the {s} have room for?", "(what is|what's) the capacity of the {s}?", MORE, "how many (people|persons|visitors|guests) (fit into|fit in|can enter|can visit|have room in) the {s}?", "for how many (people|visitors|guests) (has the {s} room|is there room in the {s})?"),
    _f("The {s} is closed on {day}. / On {day} the {s} is closed.", "(when|on which day|on what day) is the {s} closed?", "(what|which) day is the {s} closed [on]?", MORE, "(on which|on what|which|what) (day|days|day of the week) is the {s} (closed|not open|shut)?", "when is the {s} (not open|shut)?", UNSCORED, "(which day|on which day) is the {s} (shut down|out of service)?", "when (may|can) I not (visit|enter) the {s}?", "when (will|would|does) the {s} (be|stay|stand) (shut|closed) [all day]?", "(what|which) day (does the {s} rest|do they shut the {s}|is the {s} shut on)?"),
    _f("The {s} was planned by {person}. / The architect of the {s} was {person}.", "who (planned the {s}|was the architect of the {s})?", "by whom was the {s} planned?", "(what is|what was) the name of the architect of the {s}?", MORE, "(what is|what was|what's) the name of (the architect|the planner) (of|behind) the {s}?", "(which|what) (architect|person) (planned|drew) the {s}?", "who (drew|designed) the {s}?", UNSCORED, "(what is|what was|tell me) the (full name|surname|last name) of the (architect|planner) (of|behind) the {s}?", "(say|tell me|I need) the name of the (architect|planner) of the {s}.", "how was the architect of the {s} (called|named)?"),
    _f("Bus {n} goes to the {s}. / The {s} is reached by bus {n}.", "(what|which) bus goes to the {s}?", "how do I (get to|reach) the {s}?", "how is the {s} reached?", MORE, "(how do I|how can I|how could I|how do we|how does one) (reach|come to|get to|travel to|go to) the {s} [by bus]?", "(with|by|on) (what|which) bus (can I|do I) (reach|get to) the {s}?", "(what|which) bus (must|should|do) I take to the {s}?", UNSCORED, "how (do|can|could|would) (visitors|people|guests|you) (reach|come to|get to|find the way to) the {s}?", "how (might|should|would) (I|one|somebody) (reach|get to|come to) the {s}?", "(what|which) (bus line|line) (do I need|must I take) to reach the {s}?", "what do I take to (reach|get to) the {s}?", "how (am I|are we) to reach the {s}?"),
    _f("The {s} belongs to {person}. / The owner of the {s} is {person}.", "who (owns|is the owner of) the {s}?", "(to whom|whom) does the {s} belong [to]?", MORE, "(whose is|whose property is|who has|who possesses|who is it that owns) the {s}?", "(which|what) person owns the {s}?", "(what is|what's|which is|tell me) the name of the owner of the {s}."),
    _f("Visitors of the {s} must leave every {thing} at the entrance. / No {thing} may be taken into the {s}.", "what (must visitors of the {s} leave at the entrance|may not be taken into the {s})?", "what is forbidden in the {s}?", MORE, "what (may not|must not|cannot|can not) be (taken|brought|carried) into the {s}?", "what (may|can) I not (take|bring|carry) into the {s}?", "what is (not allowed|banned) in the {s}?", "what (has to|must|should) (stay|be left) at the entrance of the {s}?", UNSCORED, "what must I not (take|bring|carry) into the {s}?", "what (am I|are we) not (allowed|permitted) to (take|bring|carry) into the {s}?", "what (should not|shall not|could not) be (taken|brought|carried) into the {s}?", "what (can|may|must) (we|you|people|visitors) not (take|bring|carry) into the {s}?"),
)  # fmt: skip
PROJECT = (
    _f("The {s} starts on {date}. / The first day of the {s} is {date}.", "when does the {s} (start|begin)?", "(what is|what's) the (start|first day|start date) of the {s}?", "on (what|which) (day|date) does the {s} start?", MORE, "on (which|what) (date|day) (does|will) the {s} (start|begin)?", "from when (is the {s} on|does the {s} run)?"),
    _f("The deadline of the {s} is {date}. / The {s} must be finished by {date}.", "(what is|what's|when is) the deadline (of|for) the {s}?", "(when|by when) must the {s} be (finished|done)?", MORE, "until when (must the {s} be|does the {s} have to be) (finished|done|ready)?", "by (what|which) (date|day) must the {s} be (finished|done)?"),
    _f("The {s} is led by {person}. / {person} leads the {s}.", "who (leads|runs|is in charge of|manages) the {s}?", "(who is|what is the name of) the leader of the {s}?", "by whom is the {s} led?", MORE, "(what is|what was|what's) the name of (the leader|the head|the manager) of the {s}?", "(which|what) person (leads|runs|manages) the {s}?", UNSCORED, "(who|which person) (heads|is at the head of|is the manager of|directs) the {s}?", "(say|tell me|I need) the name of (the leader|the head|the manager) of the {s}.", "(how is|what is) (the leader|the head|the manager) of the {s} called?"),
    _f("The budget of the {s} is {money}. / The {s} has a budget of {money}.", "(what is|how large is|how big is) the budget (of|for) the {s}?", "how much money does the {s} have?", "what budget does the {s} have?", MORE, "how much (money|budget) (does the {s} have|is there for the {s}|has the {s} got)?", "how much (can|may) the {s} (cost|spend)?"),
    _f("The {s} takes place in {city}. / {city} is the place of the {s}.", "where (is|does) the {s} [take place|held]?", "in (what|which) (city|town) does the {s} take place?", "(what|which) city hosts the {s}?", MORE, "(at|in) (which|what) (place|city|town) is the {s} [held]?", "where do (we|people) meet for the {s}?", "where (is|will) the {s} (be|held|happening|taking place)?"),
    _f("{n} people take part in the {s}. / The {s} has {n} participants.", "how many (people take part|participants are) in the {s}?", "how many participants does the {s} have?", MORE, "how many (people|persons|men and women) (take part in|are part of|join|come to) the {s}?", "(what is|what's) the number of participants (of|in) the {s}?"),
    _f("The aim of the {s} is to {verb} the {adj} {thing}. / With the {s} we want to {verb} the {adj} {thing}.", "(what is|what's) the (aim|goal|purpose) of the {s}?", "what (is the {s} for|do we want with the {s})?", MORE, "(why|for what) do we (do|have) the {s}?", "what does the {s} (want|aim) to (do|reach)?"),
    _f("The {s} lasts {span}. / The length of the {s} is {span}.", "how long does the {s} (last|take)?", "how long is the {s}?", "(what is|what's) the length of the {s}?", MORE, "(how much|how many) time (does|will) the {s} (take|last|need)?", "(how long|for how long) (does|will) the {s} (take|last|go on|run)?", "(what's|what is|which is) the (length|duration) of the {s}?", UNSCORED, "how much time (will|would|shall) the {s} (be|go on|run)?", "(for how long|how many days) (is|will be) the {s} (going on|on|running)?", "how much time (is needed|must I plan|do we need) for the {s}?", "the {s} is how long?"),
    _f("The code name of the {s} is {coined}. / The {s} has the code name {coined}.", "(what is|what's) the code name of the {s}?", "(what|which) code name does the {s} have?", MORE, "(what|which|under what|under which) (code name|secret name|name) (does the {s} have|is the {s} known by|has the {s} got)?", "how is the {s} called in secret?"),
    _f("Reports about the {s} go to {person}. / {person} gets the reports about the {s}.", "who gets the reports (about|on) the {s}?", "(to whom|where) do reports about the {s} go?", MORE, "(where|to whom|to which person) (do|should|must) (reports|the reports) (about|on) the {s} go?", "who (reads|receives|is sent) the reports (about|on) the {s}?", "where do I send reports (about|on) the {s}?"),
)  # fmt: skip
RULE = (
    _f("{ss} must be returned within {span}. / You have {span} to return {ss}.", "how long (do I have|have I got) to return {ss}?", "(when|by when|within what time) must {ss} be returned?", MORE, "(how long|how much time) (have I got|have I|do I have|have we got|do we have) to (return|give back|bring back) {ss}?", "(when|by when|until when) (do I have to|must I|should I) (return|give back|bring back) {ss}?", UNSCORED, "(how much time|how many days|how long) (is there|is left|do people have|does one have) to (return|give back|bring back|take back) {ss}?", "(when|by when|until when) (must we|do we have to|do people have to|should one) (return|give back|bring back|hand back) {ss}?", "(when|by when) (must|should|do) {ss} (be brought back|come back|be given back|be handed back)?"),
    _f("{ss} may be borrowed for {span}. / The loan of {ss} is limited to {span}.", "(how long|for how long) (may|can) (I borrow {ss}|{ss} be borrowed)?", MORE, "(how long|for how long) (may|can) (we|people|one) (borrow|keep|have) {ss}?", "(what is|what's|how long is) the loan (of|for) {ss}?", UNSCORED, "(how long|for how long|how many days) (may|can|could) (somebody|anyone|a person|they) (borrow|keep|have|use) {ss}?", "how long (is one allowed|are we allowed|am I allowed) to (keep|have|borrow) {ss}?"),
    _f("{ss} are kept in the {place}. / The {place} is where {ss} are kept.", "where are {ss} kept?", "where (can I|do I) find {ss}?", "in (what|which) (room|place) are {ss} kept?", MORE, "(where|in which place|in what place) (do|can|may|could) (I|we|people) (find|get|look for) {ss}?", "where (do they|do we) keep {ss}?", UNSCORED, "(where|in which room|at what place|at which place) (do|can|may|could|would) (I|we|people|one|you) (look for|find|get|pick up|search for) {ss}?", "(where|in which place|in what place) (should|must|might) (I|we|people|one) (look for|find|get|search for) {ss}?", "(which|what) place (has|holds|keeps) {ss}?", "(what|which) is the place (for|of) {ss}?"),
    _f("Every {s} needs the signature of {person}. / {person} has to sign every {s}.", "who (signs|has to sign|must sign) every {s}?", "whose signature does (every|a) {s} need?", MORE, "whose (signature|name|hand) does (a|every|each|the) {s} (need|require)?", "who (must|has to|needs to) sign (a|every|each|the) {s}?", "by whom must (a|every|each) {s} be signed?", UNSCORED, "(who is|who would be) to sign (a|every|each|the) {s}?", "(which|what) person (signs|has to sign|must sign) (a|every|each|the) {s}?", "whose (name|hand|signature) (must be|has to be|should be|is) (on|under) (a|every|each|the) {s}?", "who (should|shall|will|would) sign (a|every|each|the) {s}?"),
    _f("Requests for {ss} go to {email}. / To ask for {ss}, write to {email}.", "where do requests for {ss} go?", "(how|where) (can|do) I ask for {ss}?", "(what|which) address is for requests for {ss}?", MORE, "(where|to whom|to which address|to what address) (do|should|must|can) (I send|I write|people send) requests for {ss}?", "(at which|to what|to which) (place|address) (do|should) requests for {ss} go?"),
    _f("A lost {s} costs {money}. / Whoever loses a {s} pays {money}.", "what does a lost {s} cost?", "how much is a lost {s}?", "what happens (if|when) I lose a {s}?", MORE, "what happens (when|if|after) (I|you|somebody|one) (lose|lost|have lost) (a|the|my) {s}?", "what (do I|must I|would I) pay (for a lost|when I lose a|if I lose a) {s}?", "I lost a {s}, what (happens|now|do I pay)?"),
    _f("{ss} are checked every {span}. / Every {span} all {ss} are checked.", "how often are {ss} checked?", "when are {ss} checked?", MORE, "how (many times|frequently) are {ss} (checked|looked at|tested)?", "how (often|many times) (do they|does somebody|do we) check {ss}?"),
    _f("No more than {n} {ss} are allowed per person. / Each person may have {n} {ss}.", "how many {ss} (are allowed|may each person have|may I have) [per person]?", "(what is|what's) the limit for {ss}?", MORE, "how many {ss} (may|can) (each|one|every|a) (person|of us) (have|get|take) [at most]?", "how many {ss} (does|can|may) (each person|everyone|everybody) (get|have|take)?"),
    _f("{ss} are ordered from {company}. / {company} delivers the {ss}.", "who delivers the {ss}?", "where are {ss} ordered [from]?", "(what|which) company delivers the {ss}?", MORE, "(which|what) (person|firm|company|shop) (delivers|brings|sells|sends) the {ss}?", "(who|whom) (brings|sells|sends) the {ss}?", "from (whom|where|which company) (are {ss} ordered|do we order {ss})?"),
    _f("Broken {ss} belong in the {colour} {thing}. / Put broken {ss} into the {colour} {thing}.", "where do broken {ss} (go|belong)?", "where (should|do) I put broken {ss}?", "what (should|do) I do with broken {ss}?", MORE, "where do broken {ss} (have to go|belong|end up)?", "where (must|can) (broken {ss} go|I put broken {ss}|I throw broken {ss})?"),
)  # fmt: skip
EVENT = (
    _f("{s} {past} the {adj} {thing} in the {place}. / In the {place}, {s} {past} the {adj} {thing}.", "what did {s} {verb}?", "where did {s} {verb} the {adj} {thing}?", "who {past} the {adj} {thing}?", "(what|which) thing did {s} {verb} in the {place}?", MORE, "(what|which) (thing|object|item) did {s} {verb} [in the {place}]?", "in (what|which) place did {s} {verb} the {adj} {thing}?", "(what|which) thing was it that {s} {past} in the {place}?", "what was {past} in the {place}?"),
    _f("{s} {past} {n} {things} on {date}. / On {date}, {s} {past} {n} {things}.", "how many {things} did {s} {verb}?", "when did {s} {verb} the {things}?", "what did {s} {verb} on {date}?", "who {past} the {things}?", MORE, "(which|what) person {past} the {things} [on {date}]?", "by whom (were|have) the {things} [been] {past}?", "on (what|which) (day|date) did {s} {verb} the {things}?", UNSCORED, "on (what|which) (day|date) was it that {s} {past} the {things}?", "on (what|which) (day|date) were the {things} {past} [by {s}]?", "(what|which) (was|is) the (day|date) on which {s} {past} the {things}?"),
    _f("{s} {past} a {thing} for {person}. / For {person}, {s} {past} a {thing}.", "for whom did {s} {verb} a {thing}?", "what did {s} {verb} for {person}?", "who {past} a {thing} for {person}?", MORE, "(who|which person) (was it that|) {past} (a|the|some) {thing} for {person}?", "(for which person|for whom) did {s} {verb} (a|the|that) {thing}?", "(which|what) thing did {s} {verb} for {person}?", UNSCORED, "(for which man or woman|for who|for what person) did {s} {verb} (a|the|that) {thing}?", "who did {s} {verb} (a|the|that) {thing} for?", "for whom was (it that {s} {past} the {thing}|the {thing} {past} by {s})?"),
    _f("{s} {past} the {animal} with a {thing}. / With a {thing}, {s} {past} the {animal}.", "(how|with what) did {s} {verb} the {animal}?", "(what|which) animal did {s} {verb}?", "who {past} the {animal}?", "what did {s} use to {verb} the {animal}?", MORE, "(what|which|what kind of|what sort of) (animal|creature|beast) did {s} {verb}?", "(what|which) animal did {s} {verb} [with a {thing}]?", "(which|what) person {past} the {animal}?", "what was used to {verb} the {animal}?", UNSCORED, "(what|which) animal was (it that {s} {past}|{past} by {s}) [with a {thing}]?", "{s} {past} (what|which) animal?", "(say|tell me|name) the animal [that] {s} {past}.", "what (animals|living thing|pet) did {s} {verb} [with a {thing}]?"),
    _f("{s} {past} the {thing} because it was {adj}. / Because it was {adj}, {s} {past} the {thing}.", "why did {s} {verb} the {thing}?", "what did {s} {verb}?", "who {past} the {thing}?", MORE, "(who|which person|what person) (was it that|) {past} the {thing}?", "by whom was the {thing} {past}?", "(for what reason|why) did {s} {verb} the {thing}?", "(what|which) thing did {s} {verb}?", UNSCORED, "who was (the one|the person|the one person) (who|that) {past} the {thing}?", "(was it|is it) known who {past} the {thing}?", "who (has|had) {past} the {thing}?"),
)  # fmt: skip

ANY = (
    _f("The {adj} {thing} in the {place} {past} {n} {animals}.", "what (is said|do you read) about the {adj} {thing}?", "what does it say about the {adj} {thing}?", "(tell me about|what about) the {adj} {thing} [in the {place}] [?]", MORE, "what (do you know|is known|is written|can you tell me) (about|of) the {adj} {thing} [in the {place}]?", "what did the {adj} {thing} [in the {place}] {verb}?"),
    _f("{s} says that the {thing} {past} by {person} is {adj}.", "what (does|did) {s} say [about the {thing}]?", "what is known about the {thing}?", "(tell me about|what about) the {thing} [?]", MORE, "what (is|would be) (known|said|written) (about|of) the {thing}?", "how is the {thing} [according to {s}]?", UNSCORED, "what (can|could|might) be (known|said|written|read) (about|of) the {thing}?", "what did {s} (tell|tell us|claim|think) [about the {thing}]?", "(what are|what were) the words of {s}?"),
    _f("After the {thing} was {past}, {s} moved to {city}.", "(where|to which city) did {s} move?", "what happened after the {thing} was {past}?", "when did {s} move to {city}?", MORE, "(where|to where|to what city|to which town|to what place) did {s} (move|go)?", "where (is|did) {s} (live now|move to|end up)?", UNSCORED, "where (did|has|does) {s} (end|ended up|gone|land) [after that|in the end]?", "where is {s} (to be found now|these days|at home now|living now)?", "(where|in which city) did {s} (settle|arrive|come to live|end up living)?"),
    _f("{person} and {s} share a {adj} {place} near {city}.", "what do {person} and {s} share?", "who shares a {place} with {s}?", "where is the {place} of {s}?", "what is near {city}?", MORE, "(who|which person|what person) (shares|has|uses) (a|the|that) {place} (with|together with) {s}?", "with whom does {s} share (a|the|that) {place}?", "what does {s} share [with {person}]?", UNSCORED, "(who else|which other person) (has|uses|shares) the {place} [of {s}]?", "(together with|along with) whom does {s} (have|use|share) the {place}?", "(who|which person|what person) (owns|shares|has|uses) (this|one|the) {place} (with|together with) {s}?"),
    _f("There are {n} {adj} {things} between the {place} and {s}.", "how many {things} are (there|between the {place} and {s})?", "what is between the {place} and {s}?", "where are the {adj} {things}?", MORE, "what (stands|can be found|lies) between the {place} and {s}?", "(in what place|in which place|where) (are|stand|can I find) the {adj} {things}?", "how many {adj} {things} are (there|between the {place} and {s})?"),
    _f("Because of the {adj} {thing}, {s} lost {money} in {year}.", "why did {s} lose {money}?", "how much did {s} lose [in {year}]?", "what happened (to {s}|because of the {adj} {thing})?", MORE, "what (happened|took place|went wrong) (to|with|for) {s} [in {year}]?", "what did {s} lose [in {year}]?", "how much money (did {s} lose|was lost by {s}) [in {year}]?", "(when|in which year) did {s} lose {money}?", "what (happened|was the matter) in {year}?", UNSCORED, "what (has happened|had happened|did happen|came|occurred) to {s} [in {year}]?", "what (misfortune|loss|bad luck) (happened to|came to|hit) {s}?", "(what|which) (thing|event) happened to {s} [in {year}]?"),
    _f("The {thing} called {s} smells of {food} and {food2}.", "what (does {s} smell|might {s} smell|would {s} smell) (of|like)?", "what smells of {food}?", "what is {s}?", "(tell me about|describe) {s}.", MORE, "what (does|might|would|could) {s} smell (of|like)?", "what (kind of thing|sort of thing|thing) is {s}?", UNSCORED, "(what|which) smell does {s} have?", "of what (does|did|may|might) {s} smell?", "(how|like what) (does|might|would|could) {s} smell?"),
    _f("Only {person} knows how to {verb} the {thing} of {s}.", "who knows how to {verb} the {thing} [of {s}]?", "what does {person} know?", "what is special about the {thing} of {s}?", MORE, "(what is|what's|what was|why is) [so] special (about|with) the {thing} of {s}?", "(which|what) person (knows how to|can) {verb} the {thing} of {s}?", "who can {verb} the {thing} of {s}?", UNSCORED, "what (is|was|makes) the {thing} of {s} (so special|special|different)?", "what was [so] (strange|particular|remarkable) (about|with) the {thing} of {s}?", "why (is|was) the {thing} of {s} [so] special?"),
    _f("{topic} (and {things}) were discussed with {s} on {date}.", "when were {things} discussed?", "what was discussed [with {s}|on {date}]?", "with whom (was {topic}|were {things}) discussed?", MORE, "(with whom|with which person|who with) (were {things}|was {topic}|were the {things}) (discussed|talked about)?", "on (what|which) (date|day) were {things} discussed?", UNSCORED, "(together with|in talks with) whom were {things} discussed?", "(who|which person) (discussed|talked about) {things}?", "with (who|which person|what person) (did we|did they) discuss {things}?", "who took part when {things} were discussed?"),
    _f("Whoever wants to {verb} a {thing} needs {n} {things2} and the help of {s}.", "what do I need to {verb} a {thing}?", "who can help me [to] {verb} a {thing}?", "how can I {verb} a {thing}?", MORE, "what (do I need|do we need|does one need|is needed|must I have|is required) to {verb} a {thing}?", "who (can|could|will|must) help [me|us] [to] {verb} a {thing}?", "whose help (do I need|is needed) to {verb} a {thing}?"),
    _f("In {city}, {s} {past} the {adj} {animal} that {person} had {past2}.", "what did {s} do in {city}?", "which {animal} did {s} {verb}?", "where did {s} {verb} the {animal}?", "what (happened|took place|went on|was going on) in {city} [back then]?", MORE, "what (happened to|became of) the {animal} in {city}?", "in (which|what) city did {s} {verb} the {animal}?", "(what|which) animal did {s} {verb} [in {city}]?", UNSCORED, "what (has happened|had happened|did happen|was happening|could be seen) in {city}?", "what (did they see|is known to have happened|is reported) in {city}?", "(which|what) (event|thing) (happened|took place) in {city}?"),
    _f("{s}: {n} {things}, {code}, {adj}.", "(what about|tell me about|what is|what is listed for) {s} [?]", "(what|which) (entry|data|figures) (is|are) there for {s}?", MORE, "what about {s} (then|now|please|)?", "what (does it say|is there|do we have) (about|on|for) {s}?", "(give me|show me) the (entry|data|figures) (for|of) {s}."),
    _f("If the {thing} is {adj}, call {s} or {verb} it at once.", "what (should|must|do) I do if the {thing} is {adj}?", "(whom|who) (should|do) I call if the {thing} is {adj}?", "the {thing} is {adj}, what (should|can) I do?", MORE, "(whom|who|which person) (must|should|do|can) (I|we|one) (call|ring|phone|tell) (if|when) the {thing} is {adj}?", "what (happens|is to be done) (if|when) the {thing} is {adj}?"),
    _f("Between {year} and {year2}, {s} {past} more than {n} {things}.", "how many {things} did {s} {verb}?", "what did {s} {verb} between {year} and {year2}?", "what (happened|took place|went on|was going on) (between {year} and {year2}|from {year} to {year2})?", MORE, "what (was done|was {past}|happened|occurred|went on|was going on|took place) (between {year} and {year2}|from {year} to {year2}|from {year} until {year2}|in the years from {year} to {year2})?", "(who|which person) {past} the {things} (between {year} and {year2}|from {year} to {year2})?", UNSCORED, "what (is known to have happened|is reported|took place|came about) (between {year} and {year2}|in the years {year} to {year2})?", "(was anything going on|did anything happen) between {year} and {year2}?", "between {year} and {year2}, what (went on|was going on|happened)?"),
)  # fmt: skip

HOUSE = (
    _f("The {s} opens at {hour} in the morning. / The {s} is open from {hour} in the morning to {hour} in the evening. / Every morning at {time} the {s} opens.", "when does the {s} open?", "(when|since when|from when) is the {s} open [in the morning]?", "(what are|what is) the opening (hours|time) of the {s}?", "at (what|which) (time|hour) does the {s} open?", MORE, "(since when|from what time|from when on) (is the {s} open|can I enter the {s}) [in the morning]?", "how early (does the {s} open|is the {s} open)?"),
    _f("{meal} is served at {time} in the {s}. / {meal} is at {time} in the {s}. / In the {s}, {meal} is served from {time} on.", "when is {meal} [served]?", "where is {meal} served?", "at (what|which) (time|hour) is {meal} [served]?", "where (can I|do we) (get|have) {meal}?", UNSCORED, "(at what time|when) (do they|do we|can I) (serve|have|get) {meal}?", "from when on is {meal} served?", "what time is there {meal}?"),
    _f("Employees get {n} days of holiday each year. / Everyone has {n} days of holiday a year. / There are {n} days of paid holiday for everyone.", "how many (days of holiday|holidays|holiday days|vacation days) (do employees get|do I have|do we get) [a year|each year]?", "how (much|long a) holiday do (I|we|employees) (get|have)?"),
    _f("Sick notes must be handed in within {span}. / Whoever is ill calls {person} before {time}. / On the first day of an illness, write to {email}.", "what (do I do|must I do|happens) (when|if) I am (ill|sick)?", "(whom|who) do I (call|tell) (when|if) I am (ill|sick)?", "when (is a sick note needed|must a sick note be handed in)?"),
    _f("The password of the guest network is {code}. / Guests use the network {coined} with the password {code}.", "(what is|what's) the [guest] (wifi|network|wi-fi) password?", "(what is|what's) the password of the (guest network|wifi|wi-fi)?", "how do guests get (into the network|online)?"),
    _f("Bicycles may be left behind the {s}. / There is room for {n} bicycles in the {s}.", "where (can|may|do) I (park|leave|put) my (bicycle|bike)?", "where do bicycles go?", "is there room for (bicycles|bikes|my bike)?", UNSCORED, "where (can|may|do|should|could) (we|people|one|guests) (park|leave|put|lock) (bicycles|bikes|a bicycle|a bike|our bikes)?", "where (should|could|would|must) I (park|leave|put) my (bicycle|bike)?", "(is there|do we have) a place for (bicycles|bikes|my bike|my bicycle)?"),
    _f("Cars are parked at the {s}, and a place costs {money}. / Parking at the {s} costs {money}.", "where (can|may|do) I park [my car]?", "(how much is|what does) (parking|a parking space) [cost]?", "how much (do I pay|must I pay) to park?"),
    _f("The team meets every {day} at {time} in the {s}. / The weekly meeting is on {day} at {time}.", "when (does the team meet|is the [weekly] meeting)?", "on (what|which) day is the [team|weekly] meeting?", "when do we meet?", MORE, "(on what|on which|what|which) day (is the|is our|do we have the) (team meeting|weekly meeting|meeting of the team|meeting)?", "when (is|begins) the (team|weekly) meeting?"),
    _f("Expenses are paid back within {span}. / Send your receipts to {person}, who pays them back within {span}.", "when (are expenses|do I get my expenses) paid back?", "how (do|can) I (claim|get back) [my] expenses?", "(what happens to|what do I do with) [my] (receipts|expenses)?", MORE, "what (do I|must I|should I|can I) do with (receipts|my receipts|the receipts|expenses)?", "where do (my receipts|receipts) go?", "(who|when) pays back [my] expenses?"),
    _f("Every flight must be approved by {person}. / {person} has to agree to every trip by plane.", "who (approves|must approve|has to approve|agrees to) [every|a] (flight|trip by plane)?", "(may I|can I) (take a plane|fly|book a flight)?", "whom do I ask (about|before) a flight?", MORE, "(who|which person) (agrees to|approves|allows|permits|must agree to) (a flight|my flight|flights|a trip by plane|trips by plane|every flight)?", "(who must|must somebody) (approve|agree to) a (flight|trip by plane)?"),
    _f("Employees may work from home on {n} days a month. / Work from home is possible on {n} days a month. / Up to {n} days a month may be worked from home.", "(how often|how many days) (can|may) (I|we|employees) work (from home|remotely)?", "(can|may) I work (from home|remotely)?", "what are the rules for (working from home|remote work|home office)?"),
    _f("The fire alarm is tested on the first {day} of the month. / The fire alarm is tested every {span}.", "when is the [fire] alarm tested?", "how often (is the|do they test the) fire alarm [tested]?", MORE, "(when|how often|on which day|on what day) (do they|do we|does somebody) test the [fire] alarm?", "(on which|on what) day is the [fire] alarm tested?"),
    _f("The key to the {s} is kept by {person}. / {person} has the key to the {s}. / Ask {person} for the key to the {s}.", "who has the key to the {s}?", "where (do|can) I get the key to the {s}?", "(whom|who) do I ask for the key to the {s}?", MORE, "(who|which person) (has|keeps|holds|owns) the key (to|of|for) the {s}?", "(from whom|where) (do|can) I (get|have) the key (to|of|for) the {s}?"),
    _f("Working hours are from {time} to {time2}. / Work begins at {time} and ends at {time2}.", "(what are|when are) the working hours?", "when does (work|the working day) (begin|start|end)?", "how long is (the|a) working day?", MORE, "(what are|when are|which are|when is) the (hours of work|working hours|working day|office hours)?", "(from when|until when) do (we|people|employees) work?"),
    _f("The probation period lasts {span}. / New employees are on probation for {span}.", "how long (is|does) the probation [period] [last]?", "how long are new employees on probation?"),
    _f("The printer stands in the {s}. / There is a printer in the {s}, which prints in colour.", "where is the printer?", "where (can|do) I print [something]?", "is there a printer?", MORE, "where (does the printer stand|can I find the printer|do I find a printer|is a printer)?", "(can|may) I print [something|here]?"),
    _f("Rubbish is collected on {day}. / The {colour} bins are emptied every {day}.", "when is the (rubbish|waste|garbage) collected?", "on (what|which) day are the bins emptied?", "when are the bins emptied?", MORE, "(when|on which day|on what day) (is the|is our) (garbage|rubbish|waste|trash) (collected|taken away|fetched)?", "(on which|on what|which|what) day (are the bins|is the bin|are our bins) (emptied|collected)?"),
    _f("Parcels are handed in at the {s} until {time}. / Letters and parcels go out from the {s} at {time}.", "where (can|do) I (hand in|send|leave) (a parcel|parcels|letters)?", "(when|until when) (do|can) parcels (go out|be handed in)?", MORE, "(where|at which place|until when) (can|do|may|could) (I|we) (send|leave|hand in|post|drop off) (letters|a letter|mail|post|my letter|parcels)?"),
    _f("In an emergency, call {phone}. / The emergency number is {phone}.", "(what is|what's) the emergency number?", "(whom|who|what number) do I call in an emergency?", "what (do I do|must I do) in an emergency?", MORE, "(whom|who|which number|what number) (do|should|must|can) (I|we) (call|ring|phone) in (an emergency|case of emergency)?", "what (do|should|must|can) (I|we) do in (an emergency|case of an emergency)?"),
    _f("New employees get their laptop from {person} on the first day. / A laptop is ready for each new employee on the first day.", "(when|where|from whom) do (new employees|I) get (a|the|my|their) (laptop|computer)?", "who hands out the laptops?", MORE, "(from whom|when|where) (do we|do people|does one) get (a|the|our) (laptop|computer)?"),
    _f("Salaries are paid on the {nth} of each month. / The salary comes on the {nth} of the month.", "when (are salaries|is the salary|do I get) paid?", "when does the (salary|money) come?", "on (what|which) day (are salaries|is the salary) paid?", MORE, "(when|on which day|on what day) (are salaries|is the salary|is our salary|is my salary|is our pay) paid?", "when (is payday|do they pay us)?"),
    _f("A contract can be ended with {span} of notice. / The notice period is {span}.", "(what is|how long is) the notice period?", "how (can|do) I (end|cancel) (the|a|my) contract?", MORE, "(how long|what) (is the|is my) (notice period|period of notice|notice)?", "how long (is|would be) (the|my|our) (notice period|period of notice|notice)?", UNSCORED, "how (does one|do we|could I|would I|might I|should I) (end|cancel|get out of|leave|terminate) (the|a|my|our) contract?", "(what do I do|what must I do) to (end|cancel|terminate) (the|a|my) contract?", "(when|how soon|how fast) can I (end|cancel|leave) (the|my) contract?"),
    _f("Dogs are welcome in the {s}. / Pets are allowed in the {s} only.", "(may|can) I bring (my|a) (dog|pet)?", "are (dogs|pets) (allowed|welcome)?", "where are (dogs|pets) (allowed|welcome)?", MORE, "are (pets|dogs|animals|cats) (allowed|welcome) [here]?", "(where|in which room) are (pets|dogs|animals) (allowed|welcome)?", "(is my|is a) (pet|dog|cat) (allowed|welcome)?", UNSCORED, "(do they allow|do you allow|do we allow|may people bring|can we bring) (pets|dogs|animals|cats)?", "are (pets|dogs|animals) (permitted|let in|tolerated) [here]?", "may (pets|dogs|animals) come (in|here|along)?"),
    _f("Questions about pay go to {email}. / For questions about pay, write to {person}.", "(whom|who) do I ask about [my] pay?", "where do questions about pay go?", MORE, "(whom|who) (can|should|must|do) I (ask|write to|turn to) (about|for) [my] (pay|salary)?", "(to whom|where) do I send questions about [my] pay?", UNSCORED, "(who|whom) (could|would|shall|might|may) I (ask|write to|turn to|call) (about|for) [my] (pay|salary|wages)?", "(who|whom) (can|should|must|do) (we|people|employees) (ask|write to|turn to|contact) (about|for) (pay|our pay|salary|the salary|wages)?", "I have a question about [my] (pay|salary), (who do I ask|whom do I ask|where does it go|who can help)?", "(who|which person) (answers|takes|knows about) questions about [my] (pay|salary|wages)?"),
)  # fmt: skip
"""Of a handbook. Their questions name no subject, so a library has each of them once."""

KINDS: tuple[tuple[Family, ...], ...] = (
    PRODUCT,
    COMPANY,
    PERSON,
    PLACE,
    PROJECT,
    RULE,
    EVENT,
    ANY,
    ANY,
    HOUSE,
)
HOUSE_KIND = KINDS.index(HOUSE)
"""`ANY` counts twice: its sentences are the least alike, as those of real documents are."""
_MATERIALS = tuple(lexicon.MATERIALS.split())
_INSTRUMENTS = tuple(lexicon.INSTRUMENTS.split())


def subject(words: Words, kind: int) -> str:
    """A subject for the families of `KINDS[kind]`."""
    rng = words.rng
    if kind == 0:
        described = f"{words.choice('ADJECTIVES')} {words.choice('THINGS')}"
        return words.proper() if rng.random() < 0.7 else described
    if kind == 1:
        return words.proper()
    if kind in (2, 6):
        return words.full_name().title() if rng.random() < 0.7 else words.first_name().capitalize()
    if kind == 3:
        return f"{words.coined().capitalize()} {words.choice('PLACES')}"
    if kind == 4:
        word = rng.choice(
            ("project", "meeting", "course", "festival", "workshop", "trip", "campaign", "study")
        )
        first = words.coined().capitalize() if rng.random() < 0.6 else words.choice("ADJECTIVES")
        return f"{first} {word}"
    if kind == 5:
        thing = words.choice("THINGS")
        return thing if rng.random() < 0.7 else f"{words.choice('ADJECTIVES')} {thing}"
    if kind == HOUSE_KIND:
        return words.choice("PLACES")
    return rng.choice((words.proper(), words.full_name().title(), words.first_name().capitalize()))


class Values(dict[str, object]):
    """Values for the slots of a pattern, each drawn when it is first asked for: few are."""

    def __init__(self, words: Words, **known: object) -> None:
        super().__init__(known)
        self._words = words

    def __missing__(self, slot: str) -> object:
        value = self[slot] = _DRAWS[slot](self._words, self)
        return value


_DRAWS: dict[str, Callable[[Words, "Values"], object]] = {
    "things": lambda words, v: plural(str(v["thing"])),
    "things2": lambda words, v: plural(str(v["thing2"])),
    "animals": lambda words, v: plural(str(v["animal"])),
    "money": lambda words, v: words.rng.choice((f"{words.number(2, 9000)} euros", f"${words.number(2, 900)}", f"{words.number(2, 99)}.{words.rng.randint(10, 99)} dollars", f"{words.number(2, 99)} million euros")),
    "weight": lambda words, v: f"{words.number(2, 900)} {words.rng.choice(('kilograms', 'grams', 'tons', 'pounds'))}",
    "span": lambda words, v: f"{words.number(2, 120)} {words.rng.choice(('days', 'hours', 'weeks', 'months', 'years', 'minutes'))}",
    "n": lambda words, v: words.number(2, 9000),
    "material": lambda words, v: words.rng.choice(_MATERIALS),
    "instrument": lambda words, v: words.rng.choice(_INSTRUMENTS),
    "colour": lambda words, v: words.choice("COLOURS"),
    "colour2": lambda words, v: words.choice("COLOURS"),
    "person": lambda words, v: words.full_name() if words.rng.random() < 0.7 else words.first_name(),
    "city": lambda words, v: words.city(),
    "adj": lambda words, v: words.choice("ADJECTIVES"),
    "a_adj": lambda words, v: a(str(v["adj"])),
    "thing": lambda words, v: words.choice("THINGS"),
    "thing2": lambda words, v: words.choice("THINGS"),
    "animal": lambda words, v: words.choice("ANIMALS"),
    "place": lambda words, v: words.choice("PLACES"),
    "food": lambda words, v: words.choice("FOODS"),
    "food2": lambda words, v: words.choice("FOODS"),
    "topic": lambda words, v: words.topic(),
    "a_job": lambda words, v: a(words.choice("JOBS")),
    "company": lambda words, v: words.proper(),
    "month": lambda words, v: words.rng.choice(("January", "March", "April", "June", "August", "October", "December", "May", "July")),
    "year": lambda words, v: words.rng.randint(1700, 2010),
    "year2": lambda words, v: words.rng.randint(2011, 2039),
    "day": lambda words, v: words.rng.choice(["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]),
    "date": lambda words, v: words.date(),
    "time": lambda words, v: words.clock_time(),
    "time2": lambda words, v: words.clock_time(),
    "hour": lambda words, v: words.rng.randint(5, 12),
    "nth": lambda words, v: words.rng.choice(("1st", "3rd", "5th", "10th", "15th", "20th", "25th", "last")),
    "meal": lambda words, v: words.rng.choice(("breakfast", "lunch", "dinner", "tea", "coffee", "supper")),
    "phone": lambda words, v: f"{words.rng.randint(100, 999)} {words.rng.randint(1000, 99999)}" if words.rng.random() < 0.5 else f"+{words.rng.randint(10, 99)} {words.rng.randint(10, 999)} {words.rng.randint(1000, 9999)}",
    "email": lambda words, v: f"{words.coined()}@{words.coined()}.{words.rng.choice(('com', 'org', 'net', 'example'))}",
    "code": lambda words, v: words.code(),
    "coined": lambda words, v: words.coined().capitalize(),
    "verb": lambda words, v: str(v["verb:past"]).split(":")[0],
    "past": lambda words, v: str(v["verb:past"]).split(":")[1],
    "past2": lambda words, v: words.choice("VERBS").split(":")[1],
    "verb:past": lambda words, v: words.choice("VERBS"),
}  # fmt: skip


def statement(words: Words, kind: int, name: str, family: int) -> Statement:
    """One sentence of a family about a subject."""
    values = Values(words, s=name, ss=plural(name))
    chosen = KINDS[kind][family]
    sentence = fill_from(words.rng.choice(chosen.says), values)
    sentence = capitalised(sentence)
    if words.rng.random() < 0.15:
        sentence = sentence.rstrip(".") + fill_from(words.rng.choice(_TAILS), Values(words)) + "."
    return Statement(sentence, chosen.asks, values, name, family)


def statements(
    words: Words, kind: int, name: str, count: int, without: Collection[int] = ()
) -> list[Statement]:
    """Different facts about one subject, of none of the families `without`."""
    left = [family for family in range(len(KINDS[kind])) if family not in without]
    families = words.rng.sample(left, min(count, len(left)))
    return [statement(words, kind, name, family) for family in families]


def filler(words: Words) -> str:
    """A sentence that answers nothing: padding as real documents have it."""
    pattern = words.rng.choice(expand(words.rng.choice(_FILLERS)))
    return capitalised(fill_from(pattern, Values(words)))


_TAILS: Sequence[str] = (
    ", as {person} confirmed in {year}", " (see page {n})", ", which surprised nobody", " according to the {adj} report",
    ", although some doubt it", " at the latest", " in most cases", ", not counting the {things}", " as agreed with {person}",
    " (as of {month} {year})", ", unless the {thing} is {adj}", " and nothing else", ", at least in {city}", " for the time being",
)  # fmt: skip
_FILLERS: Sequence[str] = (
    "This page (was last changed|was checked) in {month} {year}.", "(Please note|Note) that this may change [at any time].",
    "(More|Further) details (follow|can be found) (below|in the annex|on the next page).", "All (figures|numbers) are (rounded|estimates).",
    "(We|The team) (thank|thanks) everyone (who helped|for their help).", "(Questions|Comments) are (always|very) welcome.",
    "The {thing} and the {thing2} are (described|explained) (elsewhere|in another chapter).", "Some {things} are {adj}, others are not.",
    "It was {a_adj} {month} in the {place}.", "(There is|There was) {a_adj} {animal} near the {place}.",
    "The {place} behind the {thing} is {adj}.", "(Nobody|No one) (knows|could say) why the {thing} is so {adj}.",
    "(See|Compare) also chapter {n}.", "This (section|chapter|part) is about {topic}.", "{topic} (is|are) not (covered|treated) here.",
    "(Older|Earlier) versions of this (text|page) are in the archive.",
)  # fmt: skip
