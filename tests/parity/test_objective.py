"""Every loss equals a naive loop over documents, lanes, blocks and facts, in value and gradient."""

import itertools
import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from pdt.config import load_config
from pdt.model.planner import PlanSet
from pdt.notes.product_vq import ProductVQ
from pdt.objective import (
    channel,
    documents,
    fact_write,
    matching,
    note,
    order,
    point,
    progress,
    read_out,
    route,
    token,
    total,
)
from pdt.terms import Loss

B, K, N, P, U, F, V, E, M, C = 3, 3, 4, 5, 4, 6, 11, 8, 2, 6


def leaf(*shape: int) -> Tensor:
    return torch.randn(*shape, requires_grad=True)


def node_mask() -> Tensor:
    """Plans of two, three and four nodes; one document has a lane with a single one."""
    counts = torch.tensor([[2, 3, 4], [4, 1, 2], [3, 3, 3]])
    return torch.arange(N) < counts[:, :, None]


def fact_owners() -> tuple[Tensor, Tensor]:
    """Six, four and one facts; -1 is padding; every owner node is valid in `node_mask`."""
    lane = torch.tensor([[0, 1, 2, 2, 1, 0], [0, 2, 1, 0, -1, -1], [2, -1, -1, -1, -1, -1]])
    node = torch.tensor([[0, 2, 3, 1, 0, 1], [3, 1, 0, 0, -1, -1], [2, -1, -1, -1, -1, -1]])
    return lane, node


def block_mask() -> Tensor:
    """Lanes of one to four blocks."""
    counts = torch.tensor([[4, 2, 3], [1, 1, 2], [3, 4, 1]])
    return torch.arange(U) < counts[:, :, None]


def published() -> Tensor:
    """Lanes shorter than a block publish nothing; the last document has no note at all."""
    counts = torch.tensor([[3, 1, 2], [0, 1, 0], [0, 0, 0]])
    return (torch.arange(U)[:, None] < counts[:, None]).flatten(1)  # [B, U·K]


def same(ours: Tensor, naive: Tensor, *leaves: Tensor) -> None:
    """Equal values, and equal gradients at every leaf."""
    torch.testing.assert_close(ours, naive, atol=1e-5, rtol=1e-5)
    got = torch.autograd.grad(ours, leaves, retain_graph=True)
    expected = torch.autograd.grad(naive, leaves, allow_unused=True)
    for mine, theirs in zip(got, expected, strict=True):
        zero = torch.zeros_like(mine) if theirs is None else theirs
        torch.testing.assert_close(mine, zero, atol=1e-5, rtol=1e-4)


def mean(values: list[Tensor]) -> Tensor:
    return torch.stack(values).mean() if values else torch.zeros(())


def bce(logit: Tensor, target: bool) -> Tensor:
    return -torch.log(torch.sigmoid(logit if target else -logit))


def check_matching() -> None:
    nodes, validity = leaf(B, K, N, P), leaf(B, K, N)
    targets, valid = torch.randn(B, K, N, P), node_mask()
    ours = matching.match_plans(nodes, validity, targets, valid)
    least = []
    for b in range(B):
        costs = {}
        for sigma in itertools.permutations(range(K)):
            apart, exists = torch.zeros(()), torch.zeros(())
            for k, n in itertools.product(range(K), range(N)):
                predicted = nodes[b, sigma[k], n]
                if valid[b, k, n]:
                    apart = apart + 1 - torch.cosine_similarity(predicted, targets[b, k, n], dim=0)
                exists = exists + bce(validity[b, sigma[k], n], bool(valid[b, k, n]))
            costs[sigma] = apart / valid[b].sum() + exists / (K * N)
        best = min(costs, key=lambda sigma: costs[sigma].item())
        assert tuple(ours.predicted_of_teacher_BK[b].tolist()) == best
        least.append(costs[best])
    same(ours.loss, mean(least), nodes, validity)


def check_token() -> None:
    T, block = 7, 3
    lengths = torch.tensor([[7, 2, 5], [1, 3, 6], [4, 4, 2]])
    tokens = torch.randint(V, (B, K, T)).masked_fill(torch.arange(T) >= lengths[..., None], -1)
    prompt, h, head = leaf(B, K, P), leaf(B, K, T, P), torch.randn(V, P)
    before, parts = prompt, []
    for part in range(0, T, block):
        states = h[:, :, part : part + block]
        scores = token.scoring_states(before, states) @ head.T
        parts.append(token.token_nll(scores, tokens[:, :, part : part + block]))
        before = states[:, :, -1]
    depends = torch.rand(B, K, T) < 0.3
    ours = token.token_loss(torch.cat(parts, dim=2), tokens >= 0, (depends, 5.0))
    naive = []
    for b in range(B):
        nll = []
        for k, t in itertools.product(range(K), range(T)):
            if t < lengths[b, k]:
                state = prompt[b, k] if t == 0 else h[b, k, t - 1]
                weight = 5.0 if depends[b, k, t] else 1.0
                nll.append(-weight * torch.log_softmax(head @ state, 0)[tokens[b, k, t]])
        naive.append(mean(nll))
    same(ours, mean(naive), prompt, h)


def check_token_of_states() -> None:
    """Through a frozen head, in more rows than are scored at a time, some of them padding."""
    T = 2 * token.ROWS
    tokens = torch.randint(-V, V, (B, K, T)).clamp(min=-1)
    h, head = leaf(B, K, T, P), torch.randn(V, P)
    weight = torch.rand(B, K, T)
    ours = (weight * token.token_nll_of_states(h, head, tokens)).sum()
    naive = (weight * token.token_nll(h @ head.T, tokens)).sum()
    same(ours, naive, h)


def check_route() -> None:
    true, false = leaf(B, K, N, F), leaf(B, K, N, F)
    (lane, node), valid = fact_owners(), node_mask()
    ours = route.route_loss(true, false, lane, node, valid)
    naive = []
    for b in range(B):
        positive: list[Tensor] = []
        negative: list[Tensor] = []
        for k, n, f in itertools.product(range(K), range(N), range(F)):
            if not valid[b, k, n] or lane[b, f] < 0:
                continue
            owned = k == lane[b, f] and n == node[b, f]
            (positive if owned else negative).append(bce(true[b, k, n, f], owned))
            negative.append(bce(false[b, k, n, f], False))
        naive.append((mean(positive) + mean(negative)) / 2)
    same(ours, mean(naive), true, false)


def check_progress() -> None:
    logits, valid, exists = leaf(B, K, U, N), node_mask(), block_mask()
    active = (torch.rand(B, K, U) * valid.sum(-1, keepdim=True)).long().masked_fill(~exists, -1)
    ours = progress.progress_loss(logits, active, valid)
    naive = []
    for b in range(B):
        nll = []
        for k, u in itertools.product(range(K), range(U)):
            if exists[b, k, u]:
                row = logits[b, k, u, : valid[b, k].sum()]
                nll.append(-torch.log_softmax(row, 0)[active[b, k, u]])
        naive.append(mean(nll))
    same(ours, mean(naive), logits)


def check_fact_write() -> None:
    logits = leaf(B, K, U, F, 3)
    role = torch.randint(3, (B, K, U, F))
    role[1][role[1] == 1] = 2  # a document without references
    real = block_mask()[..., None] & (fact_owners()[0] >= 0)[:, None, None]
    role = role.masked_fill(~real, -1)
    ours = fact_write.fact_write_loss(logits, role)
    naive = []
    for b in range(B):
        places = [p for p in itertools.product(range(K), range(U), range(F)) if role[b][p] >= 0]
        n, loss = len(places), torch.zeros(())
        n_c = [sum(int(role[b][p]) == c for p in places) for c in range(3)]
        for p in places:
            c = int(role[b][p])
            loss = loss - n / (3 * n_c[c]) * torch.log_softmax(logits[b][p], 0)[c]
        naive.append(loss / n)
    same(ours, mean(naive), logits)


def check_note() -> None:
    vectors, written, sent = leaf(B, U * K, E), leaf(B, U * K, E), published()
    ours = note.note_loss(vectors, written, sent, 0.07)
    naive = []
    for b in range(B):
        who = [w for w in range(U * K) if sent[b, w]]
        nll = []
        for w in who:
            for a, c in ((vectors, written), (written, vectors)):
                scores = torch.stack([torch.cosine_similarity(a[b, w], c[b, x], 0) for x in who])
                nll.append(-torch.log_softmax(scores / 0.07, 0)[who.index(w)])
        naive.append(mean(nll))
    same(ours, mean(naive), vectors, written)


def check_order(lanes: int = 3) -> None:
    scores = leaf(B, lanes)
    pi = torch.stack([torch.randperm(lanes) for _ in range(B)])
    ours = order.order_loss(scores, pi)
    naive = []
    for b in range(B):
        loss = torch.zeros(())
        for place in range(lanes):
            rest = [scores[b, pi[b, later]].exp() for later in range(place, lanes)]
            loss = loss - torch.log(rest[0] / torch.stack(rest).sum())
        naive.append(loss)
    same(ours, mean(naive), scores)


def check_channel() -> None:
    vq = ProductVQ(E, M, C)
    written, sent = leaf(B, U * K, E), published()
    codes = vq.nearest(written)
    rows = vq.decode(codes)
    books = vq.codebooks
    commit, learn = [], []
    for b in range(B):
        apart = []
        for w, m in itertools.product(range(U * K), range(M)):
            if sent[b, w]:
                u = written[b, w, m * E // M : (m + 1) * E // M]
                apart.append((u, books[m, codes[b, w, m]]))
        commit.append(mean([(u - e.detach()).square().sum() for u, e in apart]))
        learn.append(mean([(u.detach() - e).square().sum() for u, e in apart]))
    ours = channel.commitment_loss(written, rows, sent, M)
    same(ours, mean(commit), written)
    assert torch.autograd.grad(ours, books, allow_unused=True, retain_graph=True)[0] is None
    ours = channel.codebook_loss(written, rows, sent, M)
    same(ours, mean(learn), books)
    assert torch.autograd.grad(ours, written, allow_unused=True, retain_graph=True)[0] is None


def check_usage() -> None:
    """Value: the entropy of the codes sent. Gradient: that of the soft choice, at those shares."""
    vq, written, sent = ProductVQ(E, M, C), leaf(B, U * K, E), published()
    codes, books = vq.nearest(written), vq.codebooks
    ours = channel.usage_deficit(written, codes, books, sent).mean()
    value, surrogate = 0.0, torch.zeros(())
    for b, m in itertools.product(range(B), range(M)):
        who = [w for w in range(U * K) if sent[b, w]]
        if not who:
            continue
        entropy = 0.0
        for c in range(C):
            share = sum(int(codes[b, w, m]) == c for w in who) / len(who)
            entropy -= share * math.log(share) if share else 0.0
            slope = math.log(max(share, 1e-8)) + (1.0 if share else 0.0)
            for w in who:
                part = written[b, w, m * E // M : (m + 1) * E // M]
                soft = torch.softmax(-(part - books[m]).square().sum(-1), 0)[c]
                surrogate = surrogate + slope * soft / len(who)
        value += 1 - entropy / math.log(C)
    assert ours.item() == pytest.approx(value / (B * M), abs=1e-6)
    naive = surrogate / math.log(C) / (B * M)
    same(ours - ours.detach(), naive - naive.detach(), written, books)


def check_point() -> None:
    nodes, targets = leaf(B, K, N, P), torch.randn(B, K, N, P)
    valid = torch.rand(B, K, N) < 0.6
    valid[:, :, 0] = True
    ours = point.point_loss(nodes, targets, valid)
    naive = []
    for b in range(B):
        there = [(k, n) for k in range(K) for n in range(N) if valid[b, k, n]]
        nll = []
        for place, (k, n) in enumerate(there):
            mine = nodes[b, k, n] / nodes[b, k, n].norm()
            near = [mine @ targets[b, j, m] / targets[b, j, m].norm() / 0.1 for j, m in there]
            nll.append(-torch.log_softmax(torch.stack(near), 0)[place])
        naive.append(mean(nll))
    same(ours, mean(naive), nodes)


def check_place() -> None:
    log_p, (lane, node) = leaf(B, K, N, 9).log_softmax(-1), fact_owners()
    start = torch.randint(1, 9, lane.shape)
    ours = point.place_loss(log_p, start, lane, node)
    naive = []
    for b in range(B):
        nll = [-log_p[b, lane[b, f], node[b, f], start[b, f]] for f in range(F) if lane[b, f] >= 0]
        naive.append(mean(nll))
    same(ours, mean(naive), log_p)


def check_read_out() -> None:
    logits, tokens = leaf(B, 4, V), torch.randint(V, (B, 4))
    valid = torch.tensor([[True, True, False, True], [False] * 4, [True, False, False, False]])
    ours = read_out.read_out_loss(logits, tokens.masked_fill(~valid, -1), valid)
    naive = []
    for b in range(B):
        nll = [-torch.log_softmax(logits[b, j], 0)[tokens[b, j]] for j in range(4) if valid[b, j]]
        naive.append(mean(nll) if nll else torch.zeros(()))
    same(ours, mean(naive), logits)


CHECKS = [
    check_matching,
    check_token,
    check_token_of_states,
    check_route,
    check_progress,
    check_fact_write,
    check_note,
    check_order,
    check_channel,
    check_usage,
    check_read_out,
    check_point,
    check_place,
]


@pytest.mark.paper("§5.1", "§5.2", "Eq. 7", "Eq. 8")
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_each_loss_equals_a_naive_loop_in_value_and_gradient(check: Callable[[], None]) -> None:
    check()


@pytest.mark.paper("§5.2", "Eq. 8")
@pytest.mark.parametrize("lanes", [1, 2, 4, 6])
def test_the_order_likelihood_holds_for_any_number_of_lanes(lanes: int) -> None:
    check_order(lanes)


@pytest.mark.paper("§5.1", "Eq. 7")
def test_the_order_in_which_plans_are_stored_means_nothing() -> None:
    nodes, validity = torch.randn(1, K, N, P), torch.randn(1, K, N)
    targets, valid = torch.randn(1, K, N, P), node_mask()[:1]
    plain = matching.match_plans(nodes, validity, targets, valid)
    for teacher in itertools.permutations(range(K)):
        moved = matching.match_plans(nodes, validity, targets[:, teacher], valid[:, teacher])
        torch.testing.assert_close(moved.loss, plain.loss)
        assert torch.equal(moved.predicted_of_teacher_BK, plain.predicted_of_teacher_BK[:, teacher])


@pytest.mark.paper("§5.1")
def test_matched_plans_stand_in_the_teachers_order() -> None:
    targets, valid = torch.randn(B, K, N, P), node_mask()
    shuffle = torch.stack([torch.randperm(K) for _ in range(B)])
    row = torch.arange(B)[:, None]
    plans = PlanSet(targets[row, shuffle], valid[row, shuffle], shuffle.float())
    logits = torch.where(plans.valid_BKN, 9.0, -9.0)
    found = matching.match_plans(plans.nodes_BKNP, logits, targets, valid)
    assert torch.equal(found.predicted_of_teacher_BK.argsort(1), shuffle)
    ordered = plans.select(found.predicted_of_teacher_BK)
    assert torch.equal(ordered.nodes_BKNP, targets)
    assert torch.equal(ordered.valid_BKN, valid)
    assert torch.equal(ordered.scores_BK, torch.arange(K).float().expand(B, K))


@pytest.mark.paper("§5.3", "Eq. 9")
def test_the_objective_is_the_weighted_sum_of_equation_nine() -> None:
    weights = load_config("canonical").objective
    expected = [1.0, 1.0, 1.0, 0.5, 1.0, 0.25, 0.1, 0.25, 1.0, 0.1, 0.0, 0.0]
    parts = {loss: torch.tensor(float(10**place)) for place, loss in enumerate(Loss)}
    assert [weights.weight(loss) for loss in Loss] == expected
    assert total.total_loss(parts, weights).item() == pytest.approx(
        sum(w * 10**place for place, w in enumerate(expected))
    )
    assert weights.note_temperature == 0.07
    only = {Loss.PROGRESS: parts[Loss.PROGRESS]}
    assert total.total_loss(only, weights).item() == 0.5 * 1000
    with pytest.raises(ValueError, match="no loss counts"):
        total.total_loss({}, weights)


Patch = pytest.MonkeyPatch


def the_match_is_the_stored_order(patch: Patch) -> None:
    patch.setattr(matching, "permutations", lambda lanes: [tuple(lanes)])


def a_blocks_first_token_is_scored_from_itself(patch: Patch) -> None:
    patch.setattr(token, "scoring_states", lambda before, h: h)


def every_pair_weighs_the_same(patch: Patch) -> None:
    patch.setattr(route, "mean_over_documents", lambda values, valid: values[valid].mean() * 0.7)


def nodes_of_other_facts_own_them(patch: Patch) -> None:
    plain = route.owned_pairs
    patch.setattr(route, "owned_pairs", lambda *rest: plain(*rest).roll(1, dims=1))


def padded_labels_count(patch: Patch) -> None:
    def everything(values: Tensor, valid: Tensor) -> Tensor:
        return values.mean()

    for module in (documents, token, progress, note, channel):
        patch.setattr(module, "mean_over_documents", everything)


def all_classes_weigh_one(patch: Patch) -> None:
    patch.setattr(fact_write, "class_weights", lambda role: torch.ones(len(role), 3))


MUTATIONS = [
    (the_match_is_the_stored_order, check_matching),
    (a_blocks_first_token_is_scored_from_itself, check_token),
    (every_pair_weighs_the_same, check_route),
    (nodes_of_other_facts_own_them, check_route),
    (padded_labels_count, check_token),
    (padded_labels_count, check_progress),
    (padded_labels_count, check_note),
    (padded_labels_count, check_channel),
    (all_classes_weigh_one, check_fact_write),
]


@pytest.mark.parametrize(("mutate", "check"), MUTATIONS, ids=lambda f: f.__name__)
def test_a_broken_loss_fails_its_check(
    monkeypatch: Patch, mutate: Callable[[Patch], None], check: Callable[[], None]
) -> None:
    mutate(monkeypatch)
    with pytest.raises(AssertionError):
        check()
