"""Word lists that the grammars draw from. Plain data; `words.py` splits and draws."""

NAMES = """
Ada Adam Adele Aisha Akira Alan Albert Alice Alma Amara Amir Amy Ana Anders Andre Anita Anna Anton
Arthur Asha Astrid Aurora Axel Beatrix Ben Benita Bianca Bo Boris Bram Bruno Camila Carl Carla
Carmen Cecil Celia Chen Chloe Clara Claude Conrad Cora Cyrus Daisy Dana Daniel Daria David Dean
Della Dennis Diana Diego Dimitri Dora Edith Edgar Elena Eli Elias Elif Elin Ella Elsa Emil Emma
Enzo Erik Esther Ethan Eva Fabian Farah Fatima Felix Fiona Flora Frank Freya Gabriel Gemma George
Georgia Gerda Gianna Gilbert Gina Grace Greta Gus Hana Hanna Harold Harriet Hassan Hector Heidi
Helen Henry Hilda Hiro Hugo Ian Ibrahim Ida Igor Ilse Imani Inga Ingrid Irene Iris Isaac Isabel
Ivan Ivy Jack Jacob Jada James Jana Jasmin Jasper Jean Jenna Jesse Joan Joel Johan John Jonas
Jorge Joseph Josie Judith Jules Julia June Kai Karim Karin Karl Kate Keiko Kenji Kim Kira Klaus
Kofi Kurt Lars Laura Layla Lea Leila Lena Leo Leon Lila Lina Linda Lisa Liv Lola Lorenz Louis Lucas
Lucia Ludwig Luisa Luka Luna Lydia Mabel Magnus Malik Mara Marco Maria Marie Mark Marta Martin
Mateo Matilda Max Maya Mei Mia Mila Milan Mina Miriam Mohamed Molly Mona Nadia Naomi Nina Noah Noor
Nora Oda Olaf Olga Oliver Omar Oona Oscar Otto Pablo Paula Pedro Petra Philip Pia Priya Quentin
Rachel Rafael Ralph Ravi Rex Rita Robert Robin Rosa Rose Ruben Ruby Rufus Ruth Sabine Sally Sam
Samir Sana Sandra Sara Sean Selma Sergio Silas Simon Sofia Sonia Stella Sven Tara Tariq Tess Theo
Thomas Tilda Tim Tobias Tom Uma Ursula Vera Victor Viola Wanda Walter Wendy Willa Xavier Yara Yuki
Yusuf Zara Zelda Zoe Bob Kelly Steve Mike Jennifer Jessica Michael Chris Matt Sarah Emily Nick Alex
Jordan Taylor Charlie Peter Paul Mary Jane Sophie Lily Andrew Brian Kevin Laurence Megan Nathan
"""

SURNAMES = """
Abbott Aldana Baker Barlow Becker Bell Berg Blake Brandt Burke Carver Castro Chandra Cole Conti
Cooper Costa Dahl Dalton Diaz Drake Dunn Ellis Farrow Fischer Flores Foster Frost Garcia Gomez Grant
Gray Haas Hale Hart Hayes Hill Holm Hughes Ito Jansen Jones Kaur Keller Kent Khan Klein Kovacs Kumar
Lang Larsen Lee Lind Lopez Lund Marsh Meyer Mills Mori Morris Murray Nagy Nash Novak Okafor Olsen
Osei Palmer Park Patel Perez Petrov Popov Quinn Reed Reyes Rossi Roth Sato Schmidt Shah Silva Singh
Smith Stone Suzuki Tanaka Torres Vance Vega Vogel Wagner Walsh Ward Weber West Wolf Wong Wood Young
"""

CITIES = """
Accra Adelaide Amsterdam Ankara Antwerp Athens Atlanta Auckland Baku Bangkok Barcelona Basel Beijing
Belfast Bergen Berlin Bern Bilbao Bogota Bologna Boston Bristol Brisbane Brussels Bucharest Budapest
Cairo Calgary Cardiff Chennai Chicago Cologne Copenhagen Cork Dakar Dallas Damascus Delhi Denver
Detroit Dresden Dubai Dublin Edinburgh Florence Frankfurt Gdansk Geneva Ghent Glasgow Graz Hamburg
Hanoi Havana Helsinki Houston Istanbul Jakarta Karachi Kiev Kyoto Lagos Leeds Leipzig Lima Lisbon
Liverpool Ljubljana London Lyon Madrid Malmo Manchester Manila Marseille Melbourne Miami Milan Minsk
Montreal Moscow Mumbai Munich Nairobi Naples Nantes Oslo Ottawa Oxford Palermo Paris Perth Phoenix
Porto Portland Prague Quito Reykjavik Riga Rome Rotterdam Salzburg Santiago Sarajevo Seattle Seoul
Seville Shanghai Singapore Sofia Stockholm Sydney Taipei Tallinn Tampere Tokyo Toronto Toulouse
Tunis Turin Utrecht Valencia Vancouver Venice Vienna Vilnius Warsaw Wellington York Zagreb Zurich
"""

TIMEZONES = """
London=Europe/London Paris=Europe/Paris Berlin=Europe/Berlin Madrid=Europe/Madrid Rome=Europe/Rome
Vienna=Europe/Vienna Zurich=Europe/Zurich Amsterdam=Europe/Amsterdam Brussels=Europe/Brussels
Copenhagen=Europe/Copenhagen Oslo=Europe/Oslo Stockholm=Europe/Stockholm Helsinki=Europe/Helsinki
Warsaw=Europe/Warsaw Prague=Europe/Prague Budapest=Europe/Budapest Athens=Europe/Athens
Lisbon=Europe/Lisbon Dublin=Europe/Dublin Istanbul=Europe/Istanbul Moscow=Europe/Moscow
Kiev=Europe/Kyiv Bucharest=Europe/Bucharest Sofia=Europe/Sofia Tokyo=Asia/Tokyo Seoul=Asia/Seoul
Beijing=Asia/Shanghai Shanghai=Asia/Shanghai Singapore=Asia/Singapore Bangkok=Asia/Bangkok
Jakarta=Asia/Jakarta Manila=Asia/Manila Taipei=Asia/Taipei Delhi=Asia/Kolkata Mumbai=Asia/Kolkata
Dubai=Asia/Dubai Karachi=Asia/Karachi Sydney=Australia/Sydney Melbourne=Australia/Melbourne
Perth=Australia/Perth Auckland=Pacific/Auckland Cairo=Africa/Cairo Lagos=Africa/Lagos
Nairobi=Africa/Nairobi Accra=Africa/Accra Toronto=America/Toronto Vancouver=America/Vancouver
Chicago=America/Chicago Denver=America/Denver Boston=America/New_York Miami=America/New_York
Seattle=America/Los_Angeles Lima=America/Lima Bogota=America/Bogota Santiago=America/Santiago
Phoenix=America/Phoenix Havana=America/Havana Reykjavik=Atlantic/Reykjavik
"""

LONG_TIMEZONES = {
    "New York": "America/New_York",
    "Los Angeles": "America/Los_Angeles",
    "San Francisco": "America/Los_Angeles",
    "Hong Kong": "Asia/Hong_Kong",
    "Mexico City": "America/Mexico_City",
    "Sao Paulo": "America/Sao_Paulo",
    "Buenos Aires": "America/Argentina/Buenos_Aires",
    "Cape Town": "Africa/Johannesburg",
    "Tel Aviv": "Asia/Jerusalem",
    "India": "Asia/Kolkata",
    "Japan": "Asia/Tokyo",
    "Germany": "Europe/Berlin",
    "France": "Europe/Paris",
    "Spain": "Europe/Madrid",
    "Italy": "Europe/Rome",
    "China": "Asia/Shanghai",
    "California": "America/Los_Angeles",
    "UTC": "UTC",
}

COUNTRIES = """
Albania Algeria Argentina Armenia Australia Austria Bangladesh Belgium Bolivia Brazil Bulgaria
Cambodia Canada Chile China Colombia Croatia Cuba Cyprus Denmark Ecuador Egypt Estonia Ethiopia
Finland France Georgia Germany Ghana Greece Hungary Iceland India Indonesia Iran Iraq Ireland Israel
Italy Jamaica Japan Jordan Kenya Latvia Lebanon Libya Lithuania Malaysia Malta Mexico Morocco Nepal
Nigeria Norway Pakistan Peru Poland Portugal Romania Russia Rwanda Senegal Serbia Slovakia Slovenia
Spain Sudan Sweden Switzerland Syria Tanzania Thailand Tunisia Turkey Uganda Ukraine Uruguay Vietnam
"""

LANGUAGES = """
Arabic Basque Bengali Bulgarian Catalan Chinese Croatian Czech Danish Dutch Estonian Finnish French
German Greek Hebrew Hindi Hungarian Icelandic Irish Italian Japanese Korean Latin Latvian Norwegian
Persian Polish Portuguese Romanian Russian Spanish Swahili Swedish Tamil Thai Turkish Ukrainian Urdu
Vietnamese Welsh Zulu
"""

ANIMALS = """
alpaca ant badger bat bear beaver bee beetle bird bison budgie buffalo butterfly camel canary cat
cheetah chicken cow crab crane crow deer dog dolphin donkey duck eagle eel elephant elk falcon ferret
finch fish fox frog gecko gerbil giraffe goat goldfish goose guinea-pig hamster hare hawk hedgehog
heron horse jaguar kangaroo kitten koala lamb lark lemur leopard lion lizard llama lobster lynx macaw
mole monkey moose mouse mule newt octopus ostrich otter owl ox panda panther parakeet parrot peacock
pelican penguin pig pigeon pony puppy puffin rabbit raccoon rat raven salmon seal shark sheep snail
snake sparrow spider squirrel stork swan tiger toad tortoise trout turkey turtle walrus wasp weasel
whale wolf wombat zebra
"""

FOODS = """
apples apricots asparagus avocados bacon bagels bananas basil beans beetroot berries biscuits
blueberries bread broccoli burgers butter cabbage cake candy carrots cashews celery cereal cheese
cherries chicken chocolate cinnamon coconuts coffee cookies corn couscous crackers cream cucumbers
curry dates donuts dumplings eggs falafel figs fish flour fries garlic ginger granola grapefruit
grapes ham hazelnuts honey hummus ice-cream jam juice kale kiwis lasagne leeks lemons lentils lettuce
limes mangoes melons milk mint muffins mushrooms mustard noodles nuts oats olives onions oranges
pancakes paprika parsley pasta peaches peanuts pears peas pepper pickles pies pineapples pizza plums
popcorn potatoes pretzels pudding pumpkins radishes raisins raspberries rhubarb rice rosemary salad
salmon salt sandwiches sausages soup spaghetti spinach squash steak stew strawberries sugar sushi
syrup tacos tea toast tofu tomatoes tuna vinegar waffles walnuts water yogurt zucchini
"""

COLOURS = """
amber beige black blue bronze brown coral crimson cyan emerald gold green grey indigo ivory lavender
lilac lime magenta maroon mint navy ochre olive orange peach pink plum purple red ruby scarlet silver
teal turquoise violet white yellow
"""

JOBS = """
accountant actor analyst architect artist astronomer baker banker barber beekeeper biologist
blacksmith bookseller botanist bricklayer builder butcher captain carpenter cashier chef chemist
clerk coach cobbler composer cook dancer dentist designer detective director diver doctor driver
editor electrician engineer farmer firefighter fisher florist gardener geologist glazier grocer guard
guide hairdresser historian hunter illustrator innkeeper inspector interpreter jeweller journalist
judge knight lawyer lecturer librarian locksmith magician manager mason mathematician mechanic
merchant midwife miller miner musician nurse optician painter pharmacist photographer physicist pilot
pirate plumber poet porter postman potter printer producer programmer psychologist ranger receptionist
reporter sailor salesman scientist sculptor secretary shepherd singer soldier surgeon tailor teacher
technician translator tutor vet waiter watchmaker weaver welder wizard writer zookeeper
"""

THINGS = """
anchor apron arrow axe badge bag ball banner barrel basket battery bell belt bench bicycle blanket boat
book boot bottle bowl box bracelet branch brick bridge broom brush bucket button cable cabinet camera
candle canoe cap card carpet cart castle chain chair chest clock cloak coat coin comb compass computer
contract couch crate crown cup curtain cushion desk diary dictionary doll door drawer dress drill drum
engine envelope fan feather fence file filter flag flute folder fork fountain frame fridge furnace gate
glass globe glove grill guitar hammer hammock handle harp hat heater helmet hinge hook hose jacket jar
jug kettle key keyboard kite knife ladder lamp lantern laptop leaflet lens letter lid lock locker
machine magnet map marble mask mat match medal microscope mirror mixer monitor motor mug nail napkin
necklace needle net notebook oar oven paddle paint panel paper parcel pen pencil phone photo piano
picture pillow pin pipe plate plough pocket poster pot printer projector pump purse puzzle radio rake
razor recipe ribbon ring robot rocket rope rug ruler saddle sail saw scarf scissors scooter screen
screw shelf shield ship shirt shoe shovel sign sink skate sled soap sock sofa spade speaker spoon stamp
statue stool stove suitcase sweater sword table tank tape teapot telescope tent ticket tie tile toaster
tool torch towel toy tractor train tray trumpet tube tyre umbrella vase violin wagon wallet watch wheel
whistle wire wrench yacht zip
"""

PLACES = """
airport archive attic bakery bank barn basement beach cafe canal canteen castle cave cellar chapel
cinema clinic corridor courtyard dock farm field forest gallery garage garden greenhouse gym hall
harbour hill hospital hotel island kitchen laboratory lake library lighthouse lobby market meadow mill
mountain museum office orchard park pier playground port quarry river roof school shed shop square
stable stadium station studio study temple theatre tower tunnel valley village vineyard warehouse
workshop
"""

ADJECTIVES = """
ancient awkward bitter blank bold brave brief bright broad broken busy calm careful cheap clean clever
cold common cosy crisp curious damp dark deep delicate dense distant dry dull dusty eager early empty
equal exact faint fair famous fancy fast fine firm flat fresh friendly frozen full funny gentle giant
glad golden grand great grim happy hard heavy hidden hollow honest hot huge humble hungry idle jolly
keen kind large late lazy light little lively local lonely long loose loud low lucky mad mild modern
modest narrow neat new noble noisy normal odd old open pale patient plain polite poor proud public pure
quick quiet rapid rare raw ready rich rough round royal rude rusty sad safe sharp shiny short shy
silent simple slim slow small smart smooth soft solid sour spare square stable steady steep stiff
strange strict strong sturdy sudden sweet swift tall tame tender thick thin tidy tiny tired tough
usual vague vast warm weak weird wet wide wild wise wooden worn young
"""

VERBS = """
admire:admired answer:answered bring:brought build:built buy:bought call:called carry:carried
catch:caught check:checked choose:chose clean:cleaned close:closed collect:collected copy:copied
cover:covered cut:cut deliver:delivered describe:described design:designed draw:drew drop:dropped
examine:examined find:found fix:fixed follow:followed forget:forgot guard:guarded guide:guided
hide:hid hire:hired hold:held improve:improved invent:invented invite:invited keep:kept kick:kicked
label:labelled leave:left lift:lifted lock:locked lose:lost love:loved make:made mark:marked
measure:measured meet:met mend:mended miss:missed move:moved notice:noticed open:opened order:ordered
paint:painted photograph:photographed pick:picked polish:polished praise:praised prepare:prepared
print:printed protect:protected pull:pulled push:pushed raise:raised record:recorded remove:removed
rent:rented repair:repaired replace:replaced report:reported rescue:rescued return:returned ring:rang
save:saved sell:sold send:sent serve:served share:shared shake:shook show:showed sign:signed
sketch:sketched sort:sorted steal:stole store:stored study:studied switch:switched take:took
teach:taught test:tested throw:threw tie:tied touch:touched trade:traded visit:visited wash:washed
watch:watched weigh:weighed win:won wrap:wrapped write:wrote
"""

HOBBIES = """
archery astronomy baking birdwatching boxing camping canoeing carpentry chess climbing cooking cycling
dancing diving drawing fencing fishing gardening golf hiking hockey juggling karate kayaking knitting
magic origami painting photography pottery reading rowing rugby running sailing sewing singing skating
skiing sudoku surfing swimming tennis travelling volleyball weaving writing yoga football basketball
"""

TOPICS = """
black holes|the French Revolution|quantum physics|climate change|the stock market|photosynthesis|
machine learning|the Roman Empire|relativity|the water cycle|plate tectonics|inflation|vaccines|
democracy|the human brain|solar energy|jazz music|impressionism|the Cold War|neural networks|dinosaurs|
volcanoes|ocean currents|the immune system|blockchain|cryptocurrency|the Renaissance|stoicism|
world history|electric cars|space travel|the periodic table|genetics|evolution|Shakespeare|Greek myths|
game theory|the moon landing|nuclear fusion|coral reefs|ancient Egypt|the Industrial Revolution|
microeconomics|linear algebra|calculus|probability|compilers|operating systems|databases|
regular expressions|Docker|Kubernetes|public speaking|job interviews|meditation|sleep|nutrition|
weight training|sourdough bread|houseplants|beekeeping|home insurance|mortgages|taxes|pensions|
budgeting|remote work|time management|project management|team building|customer service|branding|
social media|search engines|web design|typography|photography|film noir|opera|folk music|ballet|
chess openings|marathon training|rock climbing|scuba diving|road trips|city breaks|wine tasting|
coffee brewing|Japanese cooking|street food|origami|bird migration|whales|bees|wolves|rainforests|
deserts|glaciers|earthquakes|hurricanes|tides|the northern lights|eclipses|comets|Mars|Jupiter|
the big bang|dark matter|string theory|robots|self-driving cars|drones|3D printing|batteries|
wind turbines|recycling|organic farming|urban planning|bridges|skyscrapers|railways|lighthouses|
castles|pyramids|maps|calendars|clocks|alphabets|dialects|sign language|dreams|memory|emotions|
friendship|leadership|ethics|free will|logic|paradoxes|prime numbers|fractals|geometry|statistics|
medieval music|Vikings|samurai|pirates|the Silk Road|the Olympic Games|the World Cup|cricket|baseball|
autumn|winter|spring|summer|the sea|the moon|rain|snow|the stars|a forest|the city|my cat|old trains
"""

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
DAYS = (
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
)

ONSETS = """
b bl br c ch cl cr d dr f fl fr g gl gr h j k kl kr l m n p pl pr qu r s sh sk sl sn sp st str t th
tr v w wh x y z
"""

VOWELS = """
a a e e i i o o u u ai ea ee ie oa oo ou y
"""

TOOL_VERBS = """
create delete update find list open close start stop move copy check send print archive publish
approve reject assign merge export import share lock rename restore schedule cancel count paint scan
sign rate review register upload download clean test build deploy refresh sort hide show pause
resume join split
"""

TOOL_NOUNS = """
invoice contract order page report photo album playlist project account channel room booking ticket
card profile backup server key folder label note recipe form survey letter shipment job meeting
course badge campaign coupon message chart table poll sensor camera robot garden ship parcel licence
passport vehicle
"""

TOOL_ARGUMENTS = """
name title colour owner city size amount price level count status topic author source target speed
weight code label reason group language format country width height length duration depth version
number category team folder address material flavour sender shape brand rank distance age limit
region floor style pattern
"""

NUMERIC_ARGUMENTS = """
size amount price level count speed weight width height length duration depth number rank distance
age limit floor
"""

SMALL_NUMBERS = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen
"""

RELATIONS = """
brother sister mother father wife husband son daughter friend boss neighbour teacher cousin aunt
uncle doctor colleague partner dentist landlord coach
"""

COLUMNS = """
name age city price colour weight size count owner room job team score time number animal food place
code date country status
"""

MATERIALS = """
steel oak glass wool copper leather paper clay rubber silk bamboo granite plastic cotton brass tin
"""

INSTRUMENTS = """
violin flute piano drums trumpet harp guitar cello organ accordion clarinet banjo
"""
