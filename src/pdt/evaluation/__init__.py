"""The paper's evaluation protocol, one room for each step of its spine.

    conditions → generate → judge → measure → gate → report

    alterations/  documents as their corpus never wrote them
    protocol/     what is asked: conditions, their scope, the evidence gates
    generate/     every condition over every held-out document: texts and likelihoods
    screens/      which facts stand in a text
    measures/     from stored lines to numbers with intervals
    report/       the numbers as results.json, Markdown and a page
    verify/       a result directory, derived again from its lines
    lines/        what the steps hand on to one another, as it is stored

Paper: §7.
"""
