"""How a source address names several queues: one after the other, the most important first."""


def ordered(queues):
    return "|".join(queues)
