import { assert, describe, it } from "@effect/vitest"
import { Unanswered } from "../../src/broker/unanswered.ts"
import { makeNames } from "../../src/domain/names.ts"

const names = makeNames()
const fact = names.subjects.fact("acme", "hook", "ok", "delivered")

/** Publishes to a subject that time out after 5 s each, one after the other. */
const silence = (unanswered: Unanswered, subject: string, times: number, from = 0) => {
  for (let n = 0; n < times; n++)
    unanswered.timedOut(subject, from + n * 5_000, from + (n + 1) * 5_000)
}

describe("streams in which nothing is stored", () => {
  it("are those where three publishes timed out within 10 s or more", () => {
    const unanswered = new Unanswered(names.streamOf)
    silence(unanswered, fact, 2)
    assert.deepStrictEqual(unanswered.streams(12_000), [])
    silence(unanswered, fact, 1, 10_000)
    assert.deepStrictEqual(unanswered.streams(17_000), [{ stream: names.history, ms: 17_000 }])
    const burst = new Unanswered(names.streamOf)
    for (let n = 0; n < 5; n++) burst.timedOut(fact, n, 5_000 + n)
    assert.deepStrictEqual(burst.streams(6_000), [])
  })

  it("are none of those in which something is stored", () => {
    const unanswered = new Unanswered(names.streamOf)
    silence(unanswered, fact, 4)
    silence(unanswered, "$KV.petrel_workers.worker.w1", 4)
    const other = names.subjects.fact("other", "hook", "ok", "delivered")
    unanswered.stored(other, 19_000, names.history)
    assert.deepStrictEqual(unanswered.streams(20_000), [
      { stream: "KV_petrel_workers", ms: 20_000 }
    ])
    unanswered.clear()
    assert.deepStrictEqual(unanswered.streams(20_000), [])
  })

  it("are none of those that have stored what timed out", () => {
    const unanswered = new Unanswered(names.streamOf)
    silence(unanswered, fact, 1)
    unanswered.wasStored(fact, 0)
    silence(unanswered, fact, 2, 20_000)
    assert.deepStrictEqual(unanswered.streams(30_000), [])
    // Stored before the silence began.
    silence(unanswered, fact, 1, 32_000)
    unanswered.wasStored(fact, 19_000)
    assert.lengthOf(unanswered.streams(37_000), 1)
  })

  it("are none of those that have stored what was sent after what timed out", () => {
    const unanswered = new Unanswered(names.streamOf)
    // Stored before it is known that an earlier one is not answered.
    unanswered.stored(fact, 4_000, names.history)
    silence(unanswered, fact, 3)
    assert.deepStrictEqual(unanswered.streams(16_000), [])
    silence(unanswered, fact, 1, 15_000)
    assert.deepStrictEqual(unanswered.streams(21_000), [{ stream: names.history, ms: 16_000 }])
    // Of another broker nothing of that is known.
    unanswered.clear()
    silence(unanswered, fact, 3)
    assert.lengthOf(unanswered.streams(16_000), 1)
  })

  it("are none of those whose messages another stream stores first", () => {
    const unanswered = new Unanswered(names.streamOf)
    const event = names.subjects.event("acme", "a")
    silence(unanswered, event, 4)
    assert.lengthOf(unanswered.streams(20_000), 1)
    unanswered.stored(event, 19_000, names.ownEvents)
    assert.deepStrictEqual(unanswered.streams(20_000), [])
  })

  it("are forgotten where nobody publishes any more", () => {
    const unanswered = new Unanswered(names.streamOf)
    silence(unanswered, fact, 4)
    assert.lengthOf(unanswered.streams(80_000), 1)
    assert.deepStrictEqual(unanswered.streams(81_000), [])
    silence(unanswered, fact, 1, 100_000)
    assert.deepStrictEqual(unanswered.streams(106_000), [])
  })
})

describe("the stream of a subject", () => {
  it.each([
    [names.subjects.event("acme", "a"), names.events],
    [names.subjects.alertEvent("acme", "a"), names.events],
    [names.subjects.delivery(3, "acme", "hook"), names.deliveries(3)],
    [names.subjects.schedule(3, "x"), names.deliveries(3)],
    [names.subjects.backlog(12, "acme", "hook"), names.backlog(12)],
    [fact, names.history],
    [names.subjects.dead("acme", "hook"), names.dead],
    ["$KV.petrel_endpoints.acme.hook", "KV_petrel_endpoints"],
    [names.subjects.ask(1), undefined],
    ["_INBOX.1", undefined]
  ])("%s is %s", (subject, stream) => {
    assert.strictEqual(names.streamOf(subject), stream)
  })
})
