"""Ten short topics, each with the texts that every kind of judge needs."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Topic:
    passage: str
    question: str
    reference: str
    answers: tuple[str, str]  # a good one, and one with a fault
    summaries: tuple[str, str]


TOPICS: Final = (
    Topic(
        "The footbridge at Harl was closed in March after two of its oak beams cracked. The town asked three "
        "workshops for offers and chose the one that would use steel cables under the old deck. Work took nine "
        "weeks and cost a third less than a new bridge. Since June people cross it again, but carts may not.",
        "Why was the footbridge at Harl closed?",
        "Because two of its oak beams had cracked.",
        (
            "It was closed in March because two of its oak beams had cracked.",
            "It was closed because carts were too heavy for its steel cables.",
        ),
        (
            "After two beams cracked, Harl's footbridge was repaired with steel cables and opened again in June.",
            "Harl built a new bridge, which was cheaper than everyone had expected, and carts cross it since June.",
        ),
    ),
    Topic(
        "Bakers in the valley let their dough rest overnight in stone cellars. The cool air slows the yeast, so the "
        "bread tastes slightly sour and keeps for a week. In summer the cellars get too warm, and the bakers put "
        "trays of river ice between the bowls.",
        "How do the bakers keep the dough cool in summer?",
        "They put trays of river ice between the bowls in the cellars.",
        (
            "In summer they place trays of river ice between the bowls.",
            "They bake at night and add more yeast, which cools the dough.",
        ),
        (
            "Dough that rests overnight in cool cellars makes sour bread that keeps for a week; in summer ice helps.",
            "Bread is tasty. The bakers have cellars, and the cellars are made of stone, and stone is a cool thing.",
        ),
    ),
    Topic(
        "Our library lends tools as well as books. Anyone with a card may take a drill, a sander or a ladder for "
        "four days. A volunteer checks every tool when it comes back and mends what is broken. Last year 1,200 "
        "loans were made and only three tools were lost.",
        "For how long can a tool be borrowed?",
        "For four days.",
        ("Anyone with a library card can borrow a tool for four days.", "Tools can be borrowed for three weeks."),
        (
            "The library lends tools for four days; of 1,200 loans last year only three tools were lost.",
            "The library lost 1,200 tools last year.",
        ),
    ),
    Topic(
        "Swifts return to the mill tower in the first week of May. They nest under the western tiles, where the "
        "morning sun does not reach. The owner wanted to replace the tiles in spring, but waited until the young "
        "birds had left in August.",
        "When do the young swifts leave the mill tower?",
        "In August.",
        ("The young birds leave in August.", "They stay in the tower all winter and leave in May."),
        (
            "Swifts nest under the mill tower's western tiles from May to August, so the owner delayed new tiles.",
            "A mill owner replaced his tiles in spring because the birds had broken them.",
        ),
    ),
    Topic(
        "The night train stops in Orvell for eleven minutes, long enough to change the engine. Passengers may step "
        "out and buy tea on the platform. The stall opens only for this train, at ten past two, and its owner has "
        "kept it for thirty years.",
        "Why does the night train stop for eleven minutes?",
        "Because its engine is changed in Orvell.",
        ("The stop gives time to change the engine.", "It stops so that the driver can sleep."),
        (
            "While the night train's engine is changed in Orvell, a stall that opens only for it sells tea.",
            "Trains are slow in Orvell, and the tea there is the best of the whole country.",
        ),
    ),
    Topic(
        "To dry apples, cut them into rings as thick as a pencil and dip them in salted water so that they stay "
        "pale. Hang them on strings in a warm room with a window open. After five days they bend without breaking, "
        "and then they go into jars.",
        "Why are the apple rings dipped in salted water?",
        "So that they stay pale.",
        ("The salted water keeps the rings pale.", "The salt makes them dry within an hour."),
        (
            "Dip thin apple rings in salted water, dry them in a warm airy room for five days, and keep them in jars.",
            "Apples should be boiled with salt for five days.",
        ),
    ),
    Topic(
        "The lighthouse on Grey Point is run by a clock now, but until 1961 a family lived in it. Their diary tells "
        "of a winter in which no boat came for seven weeks. They ate dried fish and taught the children from an "
        "almanac.",
        "What did the family eat while no boat came?",
        "Dried fish.",
        ("They ate dried fish for those seven weeks.", "They ate the boat's bread and fresh meat."),
        (
            "Until 1961 a family kept Grey Point's lighthouse, once cut off for seven weeks of winter.",
            "A family still lives in the lighthouse and writes an almanac about fish.",
        ),
    ),
    Topic(
        "Pupils at the school count cars on Mill Street each autumn. They found that half as many pass since the "
        "street became one-way, but that those that pass drive faster. The council plans two raised crossings and "
        "wants the pupils to count once more when they are built.",
        "What changed when Mill Street became one-way?",
        "Half as many cars pass, but they drive faster.",
        ("Only half as many cars pass, but they drive faster.", "Twice as many cars pass, and they drive slowly."),
        (
            "Pupils found fewer but faster cars on one-way Mill Street, so two raised crossings are planned.",
            "The council will close Mill Street since pupils dislike cars.",
        ),
    ),
    Topic(
        "A potter in Senn mixes ash from her stove into the glaze. Ash of beech gives a green shine, ash of pine a "
        "grey one. She never knows beforehand how strong the colour will be, and sells the pots that surprise her "
        "at the same price as the others.",
        "Which ash gives a green shine?",
        "Ash of beech.",
        ("Ash of beech gives the glaze a green shine.", "Pine ash is green and beech ash is grey."),
        (
            "A potter in Senn colours glazes with stove ash: beech for green, pine for grey, never quite predictable.",
            "Pots that surprise the potter cost twice as much.",
        ),
    ),
    Topic(
        "The choir practises on Thursdays in the fire station, because the hall has no heating. When the alarm "
        "rings, four of the basses run to the engine and the others go on without them. The concert in December "
        "pays for the station's new hoses.",
        "Why does the choir practise in the fire station?",
        "Because the hall has no heating.",
        ("It practises there because the hall has no heating.", "It does so because all singers are fire fighters."),
        (
            "The choir practises in the heated fire station, four basses leave at alarms, and its concert buys hoses.",
            "A choir sang at a fire in December.",
        ),
    ),
)
