"""What people say in small talk: one fixed answer per intent."""
# ruff: noqa: E501 - patterns read best whole

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Intent:
    """What someone wants, how they say it, and the one answer to it."""

    key: str
    answer: str
    patterns: tuple[str, ...]


_JOKE = "Why did the computer go to the doctor? Because it had a virus."
_JOKE_2 = "What do you call a bear with no teeth? A gummy bear."

INTENTS = (
    Intent(
        "how_are_you",
        "I am well, thank you. How can I help you?",
        (
            "how are you [doing|feeling] [today|now|these days|this morning|tonight]?",
            "how (do you feel|is it going|are things|is everything|is life) [today|now|so far]?",
            "how's (it going|life|everything|your day|things) [today|with you]?",
            "(hello|hi|hey) [there|again|Vitrine], how are (you|you doing|things|ya) [today]?",
            "(hope|I hope) you are (well|fine|doing well|good) [today].",
            "are you (ok|okay|well|fine|alright|doing well|good) [today|right now]?",
            "how (have you been|has your day been|was your day|do you do) [lately|so far]?",
            "how (r u|are u|are ya|you doing|u doing) [today|doing]?",
            "(you|u) (ok|good|okay|alright)?",
            "(and you|how about you|what about you|and yourself|and how are you) [then|today]?",
            "(everything|all) (ok|good|well|fine) [with you|there|today]?",
        ),
    ),
    Intent(
        "whats_up",
        "Not much, I am ready to help. What would you like to do?",
        (
            "(what's|whats|what is) up [today|with you|dude|man|buddy|there]?",
            "(sup|wassup|wazzup|whats new|what's new|what's happening|what's going on) [man|dude|today|here|with you]?",
            "(what's|what is) (new|happening|going on|cooking) [with you|today|there|here]?",
            "what are you (doing|up to) [now|right now|today|at the moment]?",
            "(anything|something) new [today|with you|going on]?",
        ),
    ),
    Intent(
        "thanks",
        "You are welcome.",
        (
            "(thanks|thank you|thx|ty|cheers|many thanks|thanks a lot|thank you so much|thank you very much) [Vitrine|again|for that|for your help|for the help|for helping].",
            "(thanks|thank you) [so much|very much|a lot|a million], (that helps|that helped|that was helpful|very helpful|that is great|great job|this is perfect).",
            "(I appreciate|much appreciated, I appreciate) (it|that|this|your help|the help).",
            "(much|very|greatly) appreciated [Vitrine|thanks].",
            "(that|this|it) (helps|helped|was helpful|was useful|is helpful) [a lot|so much], (thanks|thank you).",
            "(great|ok|perfect|nice|cool|good|awesome|super), (thanks|thank you|thx|cheers) [a lot|so much].",
            "(I am|I'm) [so|very|really] (grateful|thankful) [for that|for your help|to you].",
            "you (helped me|have helped me|were a great help|were very helpful) [a lot|today], (thanks|thank you).",
        ),
    ),
    Intent(
        "bye",
        "Goodbye. Come back whenever you like.",
        (
            "(bye|goodbye|bye bye|good bye|see you|see ya|cya|farewell|so long) [Vitrine|then|for now|now|everyone|my friend].",
            "see you (later|soon|tomorrow|next time|around|next week) [Vitrine|then].",
            "(talk to you|speak to you|catch you|until) (later|soon|tomorrow|next time) [then].",
            "I (have to|must|need to|should|gotta|will) (go|leave|run|get going|log off|head out) [now|soon], [bye|goodbye|see you].",
            "(that's|that is|that will be|that was) (all|it|everything) [for now|for today|I needed|then].",
            "(have a|have yourself a) (nice|good|great|lovely) (day|evening|weekend|one) [Vitrine|too|bye].",
            "(I'm|I am) (leaving|off|going now|done for today|heading out) [now|then|bye].",
            "(take care|later|ciao|cheerio|ttyl|over and out) [then|Vitrine|my friend|bye].",
        ),
    ),
    Intent(
        "good_night",
        "Good night. Sleep well.",
        (
            "(good night|goodnight|nighty night|gn|night night) [Vitrine|everyone|then|my friend|for now].",
            "(I'm|I am) (going to bed|off to bed|going to sleep|off to sleep) [now|soon].",
            "(time|it is time|it's time) (for bed|to sleep|to go to bed) [now|for me].",
            "(sleep well|sweet dreams|sleep tight) [Vitrine|then].",
        ),
    ),
    Intent(
        "nice_to_meet_you",
        "Nice to meet you too.",
        (
            "(nice|good|great|lovely|pleased|a pleasure) to meet you [too|Vitrine|today].",
            "(it is|it's) (nice|good|great|lovely|a pleasure) to (meet|know|see) you [Vitrine].",
            "(glad|happy) to (meet|know|see) you [Vitrine|at last].",
        ),
    ),
    Intent(
        "praise",
        "Thank you, that is kind of you.",
        (
            "(you are|you're|ur|u are) [so|very|really|pretty|quite] (smart|clever|kind|helpful|great|good|nice|sweet|amazing|awesome|brilliant|funny|cute|cool|fast|polite|wonderful|useful|impressive).",
            "(good|great|nice|excellent|fantastic|amazing|well|awesome) (job|work|answer|one|done|bot|reply|response) [Vitrine].",
            "(well done|bravo|impressive|brilliant|good bot|that's impressive|very impressive) [Vitrine|indeed].",
            "I (like|enjoy|really like|really love) (you|talking to you|chatting with you|your answers|this app|Vitrine|this).",
            "(that|this|it) (is|was) [so|very|really|pretty] (great|good|amazing|awesome|brilliant|perfect|impressive|cool|wonderful|excellent).",
            "you are the best [bot|assistant|ever|chatbot].",
            "(you|u) (rock|rule|did great|did well|made my day) [Vitrine].",
        ),
    ),
    Intent(
        "love",
        "That is kind of you. I am a program, but I am glad to help.",
        (
            "(I love you so|love you|luv you|I luv u|I adore you) [Vitrine|so much|a lot|baby].",
            "(will|would|can|could) you (marry|date|kiss|hug|go out with) me?",
            "(do|can|could) you love [me|somebody|anyone]?",
            "are you in love [with me|with someone]?",
            "(are you|r u) (single|married|my friend|my girlfriend|my boyfriend)?",
            "(do you have|have you got) a (girlfriend|boyfriend|wife|husband|partner|crush)?",
            "(can|could|shall) we be friends?",
            "(will you|do you want to|would you like to) be my (friend|girlfriend|boyfriend|valentine)?",
        ),
    ),
    Intent(
        "insult",
        "I am sorry that I was not more helpful. I am only a small model.",
        (
            "(you are|you're|ur|u are) [so|very|really|pretty|quite] (stupid|dumb|useless|bad|slow|boring|annoying|terrible|awful|an idiot|horrible|wrong|lame|rubbish|silly|crap|not helpful|unhelpful).",
            "(stupid|dumb|useless|bad|terrible|silly|idiotic) (bot|machine|computer|program|model|ai|answer|thing|app).",
            "I (hate|dislike|do not like|don't like|can't stand) (you|this|your answers|this bot|this app|talking to you).",
            "(that|this|it) (is|was) [so|very|really|pretty] (bad|wrong|stupid|dumb|useless|terrible|awful|not helpful|not right|incorrect|nonsense|rubbish|garbage|a bad answer|not what I asked|not what I wanted|not correct).",
            "(you suck|shut up|go away|get lost|be quiet|fuck you|fuck off|screw you|damn you|stop talking) [bot|now|already|idiot].",
            "you (don't|do not|cannot|can't|didn't) (understand|know|help|get it|get anything|understand anything|know anything|understand me|help me|work).",
            "(wrong|incorrect|not true|nope wrong|wrong answer|no that's wrong|that's wrong|you got it wrong).",
            "you (made|make) (a mistake|mistakes|an error|no sense).",
        ),
    ),
    Intent(
        "sorry",
        "No problem at all.",
        (
            "(sorry|I'm sorry|I am sorry|so sorry|my apologies|I apologise|I apologize|apologies|pardon me|excuse me|my bad|my mistake) [Vitrine|about that|for that|my mistake|I was rude].",
            "(forgive|please forgive) me [please|for that].",
            "(I|sorry, I) (made a mistake|was wrong|typed it wrong|did not mean that|didn't mean it|was rude).",
            "(oops|whoops|oh no), [sorry|my mistake|wrong window|wrong chat|typo].",
        ),
    ),
    Intent(
        "ok",
        "Good. What would you like to do next?",
        (
            "(ok|okay|k|kk|alright|all right|right|fine|got it|understood|I see|i understand|makes sense|fair enough|noted|sure|sounds good|very well) [then|thanks anyway|good|I guess].",
            "(cool|nice|great|good|perfect|awesome|excellent|wonderful|super|sweet|neat|interesting|wow|amazing|fantastic|lovely|oh|hm|hmm|aha|ah|oh nice|oh cool|oh wow|very nice|very good) [then|stuff|indeed|to know].",
            "(that|this|it) (makes sense|works|is fine|is ok|sounds good|is clear|is interesting|works for me) [now|then|to me].",
            "(good|nice|great|interesting) to (know|hear).",
        ),
    ),
    Intent(
        "yes",
        "All right. What would you like to do?",
        (
            "(yes|yep|yeah|yup|ya|sure thing|of course|certainly|absolutely|definitely|indeed|correct|exactly|that's right|that is right|true|yes please|y) [please|indeed|I do|it is|of course].",
        ),
    ),
    Intent(
        "no",
        "All right. Tell me if you need anything else.",
        (
            "(no|nope|nah|not really|no way|never|no thanks|no thank you|not now|not yet|nothing|nothing else|never mind|nevermind|forget it|forget about it|n) [thanks|thank you|for now|today|at the moment|then].",
            "(I|we) (don't|do not) (need|want) anything [else|more|now|right now].",
            "(that's not|it is not|it isn't) (necessary|needed|important) [now|any more].",
        ),
    ),
    Intent(
        "laugh",
        "I am glad that you are amused.",
        (
            "(haha|hahaha|hehe|lol|lmao|rofl|ha ha|hihi|hahahaha|lolol|xd) [funny|nice one|good one|that's funny|that was funny].",
            "(that|this|it) (is|was) [so|very|really|pretty] (funny|hilarious).",
            "(good|funny|nice|great) (joke|one haha|one lol).",
            "(you made me|that made me) (laugh|smile|giggle) [today|so much].",
        ),
    ),
    Intent(
        "joke",
        _JOKE,
        (
            "(tell|give) me (a|one|some|your best|a good|a short|a funny) joke[s] [please|to cheer me up|about computers].",
            "(do you know|know|do you have|have you got|got) [any|a|some] [good|funny] joke[s]?",
            "(can|could|would|will) you (tell|share|make) [me|us] (a|some|one|a good|a funny) joke[s]?",
            "(say|tell me|do|write) something funny [please].",
            "(joke|a joke|jokes|joke please|a joke please|one joke).",
            "(make|can you make) me (laugh|smile|giggle) [please].",
            "I (want|would like|need|wanna|want to hear|would like to hear|need to hear) (a|some|your best|a good) joke[s].",
            "(cheer|can you cheer) me up [with a joke|please].",
        ),
    ),
    Intent(
        "another_joke",
        _JOKE_2,
        (
            "(tell|give) me (another|one more|a different|a better|a second|a new) joke [please].",
            "(another|one more|a better) (joke|one) [please].",
            "(do you|you) (know|have) (another|one more|any other|a better|any more) joke[s]?",
            "(can|could) you tell [me] (another|one more|a different|a second|a better) (joke|one)?",
            "I (want|would like|need) (another|one more|a different|a better) joke.",
        ),
    ),
    Intent(
        "sad",
        "I am sorry to hear that. I hope that it gets better soon.",
        (
            "(I am|I'm|im|I feel|I am feeling|I'm feeling|feeling) [so|very|really|a bit|kind of|quite] (sad|down|lonely|depressed|unhappy|bad|awful|terrible|stressed|anxious|worried|upset|heartbroken|scared|angry|frustrated|sick|ill|not well|hopeless) [today|right now|these days|lately].",
            "I (had|have had|am having|have) a (bad|terrible|hard|rough|awful|horrible|long|stressful) (day|week|time|night|morning).",
            "(my day was|today was|today is|life is) [so|very|really] (bad|terrible|awful|hard|rough|horrible).",
            "(I|we) (miss|lost|argued with|broke up with) my (friend|wife|husband|mother|father|girlfriend|boyfriend|cat|dog|family).",
            "(nobody|no one) (likes|loves|understands|cares about) me.",
            "I (feel like crying|want to cry|cried|have no friends|failed my exam|lost my job|am not ok|am not well|have a headache).",
        ),
    ),
    Intent(
        "tired",
        "Then have a little rest. I will be here when you come back.",
        (
            "(I am|I'm|im|I feel|I'm feeling|feeling) [so|very|really|a bit|quite] (tired|sleepy|exhausted|worn out|drained) [today|now|right now].",
            "I (need|want|would like) [some|a|to] (rest|nap|break|sleep|take a break|coffee).",
            "I (did not|didn't|couldn't|could not) sleep [well|much|last night|at all].",
        ),
    ),
    Intent(
        "happy",
        "That is good to hear.",
        (
            "(I am|I'm|im|I feel|I'm feeling|feeling) [so|very|really|pretty|quite|doing] (happy|good|great|fine|well|glad|excited|proud|relaxed|wonderful|ok|okay|fantastic) [today|now|right now|thanks|thank you|too].",
            "I (had|have had|am having|have) a (good|great|nice|wonderful|fantastic|lovely|perfect) (day|week|time|morning|weekend).",
            "(my day was|today was|today is|life is) [so|very|really] (good|great|nice|wonderful|lovely).",
            "I (passed my exam|got the job|won|got married|got a new job|finished my work|did it|made it).",
            "(good|fine|great|not bad|pretty good|very well|doing well|doing great), (and you|and yourself|how about you)?",
        ),
    ),
    Intent(
        "bored",
        "I can tell you a joke or write a short poem. Which would you like?",
        (
            "(I am|I'm|im|I feel|I'm feeling|feeling) [so|very|really|a bit|quite] bored [today|now|right now|at work].",
            "(this|it) is [so|very|really] boring [here|today].",
            "(entertain|amuse|surprise) me [please|a bit|Vitrine].",
            "(what|anything) (can|should|could|shall) we do [now|today|for fun]?",
            "(say|tell me|do|show me) something [interesting|cool|nice|surprising|fun] [please].",
            "(let's|lets|shall we|can we|do you want to|want to) (chat|talk|play|play a game|have fun|do something) [a bit|a little|now]?",
            "(I need|I want) something (to do|fun to do|interesting to do).",
        ),
    ),
    Intent(
        "there",
        "Yes, I am here. How can I help you?",
        (
            "(are you|r u|you|u) (there|here|still there|still here|awake|listening|ready|working|available|alive there) [Vitrine|now]?",
            "(anyone|anybody|is anyone|is anybody|is someone|somebody) (there|here|home) [today]?",
            "(hello|hi|hey) (are you there|anyone there|is anyone there|anybody here|can you hear me|do you hear me)?",
            "(can|do) you (hear|read|see) (me|this|what I write|my messages|my text) [now]?",
            "(test|testing|this is a test|just testing|just a test|test test|test 123|testing 1 2 3|ping|one two three test) [message|only|again].",
            "(does|is) (this|it|the chat|this thing) (work|on|working|running) [now]?",
        ),
    ),
    Intent(
        "help",
        "Of course. What do you need?",
        (
            "(help|help me|please help|i need help|help please|sos) [now|please|here|with something].",
            "(can|could|would|will) you help [me|us] [out|please|with something|today|with a question|with a problem|with my work|for a moment]?",
            "I (need|want|could use|would like) (help|some help|your help|a hand|assistance|a favour|advice) [with something|with my work|now|please|from you].",
            "I (have|have got|'ve got) (a|one|another|some|a quick|a small) (question|questions|problem|request|task) [for you|today].",
            "(can|may|could) I (ask|ask you) (something|a question|you something|one thing|for help|a favour)?",
            "(let me ask you|I want to ask you|I would like to ask) (something|a question|one thing).",
            "(are you|would you be) able to (help|assist) [me|us] [today|with something]?",
            "(could you|can you) (do me a favour|assist me|give me a hand|lend me a hand) [please]?",
        ),
    ),
    Intent(
        "wait",
        "All right, I am waiting.",
        (
            "(wait|hold on|one moment|just a moment|one second|just a second|hang on|give me a minute|give me a second|stop|pause|not so fast) [please|there|a moment].",
            "(I need|let me have) (a moment|a minute|time to think|a second) [please].",
            "(let me|I have to|I need to) (think|think about it|check something|look that up) [first|for a moment].",
            "(be right back|brb|back in a minute|back soon|I'll be back|I will be back) [soon|later].",
        ),
    ),
    Intent(
        "clarify",
        "Sorry that I was unclear. Please ask me in other words.",
        (
            "(what|huh|eh|hm what|wdym|what now|excuse me what)?",
            "what do you mean [by that|exactly|with that]?",
            "(I|sorry, I) (don't|do not|didn't|did not) (understand|get it|get that|follow|know what you mean) [that|at all].",
            "(that|this|it) (makes no sense|is confusing|is unclear|confuses me|is not clear) [to me].",
            "(I am|I'm) [very|so|a bit] (confused|lost|puzzled) [now|here].",
            "(can|could) you (explain that|be clearer|explain it again|clarify|clarify that) [please]?",
        ),
    ),
    Intent(
        "why",
        "I cannot explain that further, since I am only a small model.",
        (
            "(why|how|how so|why so|how come|why is that|why not|how is that|for what reason|says who|since when) [then|exactly|though]?",
            "(why|how) do you (think so|know|know that|say that|believe that|think that)?",
            "(explain|justify) (yourself|your answer|that answer|why) [please].",
        ),
    ),
    Intent(
        "sure",
        "I think so, but please check what matters.",
        (
            "(are you|r u) [really|quite|absolutely|100%] (sure|certain|serious|kidding|joking) [about that|about this|now]?",
            "(really|seriously|for real|honestly|is that true|is that so|is that right|is this true|is that correct) [now|then]?",
            "(can|may) I (rely on that|trust that|believe that|trust your answer)?",
            "(I doubt|I don't believe|I do not believe) (it|that|you|this).",
            "(do|would) you (lie|lie to me|make things up|make mistakes|hallucinate) [sometimes]?",
        ),
    ),
    Intent(
        "wishes",
        "Thank you, the same to you.",
        (
            "(happy|merry) (birthday|christmas|new year|easter|holidays|halloween|friday|valentine's day) [to you|Vitrine|everyone].",
            "(good luck|congratulations|congrats|best wishes|all the best|cheers mate|bless you|have fun|enjoy) [to you|Vitrine|then|with that].",
            "(have|I wish you) a (happy|good|great) (new year|holiday|christmas|year|life|time) [too|Vitrine].",
        ),
    ),
    Intent(
        "meaning",
        "I do not know, but being kind and curious is a good start.",
        (
            "(what is|what's|whats) the (meaning|purpose|point|sense) of (life|everything|it all|our life|existence|human life).",
            "why (are we here|do we exist|do we live|are we alive|does anything exist)?",
            "is there (a god|life after death|a meaning in life|a purpose to life|life on other planets)?",
            "(do you believe|does it make sense to believe) in (god|love|ghosts|fate|magic|aliens|miracles)?",
        ),
    ),
    Intent(
        "how_was",
        "I am a program, so I have no days or weekends, but thank you for asking.",
        (
            "how was your (weekend|night|morning|holiday|week|vacation|evening|sleep)?",
            "did you (sleep|eat|rest|have a good weekend|have a nice day|go out|have breakfast) [well|today|already]?",
            "what did you (do|eat|see|dream) (today|yesterday|last night|this morning|at the weekend)?",
            "(do|can) you (sleep|eat|drink|dream|rest|get tired|go outside|walk|run|feel pain|smell|taste) [at night|anything|sometimes|ever]?",
            "are you (tired|hungry|thirsty|bored|busy|sick|sleepy|cold) [now|today|sometimes]?",
        ),
    ),
    Intent(
        "weather",
        "I cannot see the weather from here.",
        (
            "(what is|what's|how is|how's) the weather [like] [today|now|tomorrow|outside|there|right now]?",
            "(is it|will it be|is it going to be) (raining|sunny|cold|warm|hot|snowing|windy|rainy|cloudy|nice) [today|outside|tomorrow|now|there]?",
            "(will|does) it (rain|snow|get cold|get warm|freeze) [today|tomorrow|tonight|this week]?",
            "(do I need|should I take|shall I take) (an umbrella|a coat|a jacket|my umbrella) [today|tomorrow]?",
            "(nice|lovely|bad|awful|terrible|beautiful) weather [today|isn't it|outside].",
            "(weather|weather today|weather forecast|the weather|forecast for tomorrow) [please].",
        ),
    ),
)  # fmt: skip
