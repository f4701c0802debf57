import { setTimeout } from "node:timers/promises"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import type { Entry, NewEntry } from "../../src/receiver/entry.ts"
import type { OnceOutcome, Queue, Store } from "../../src/receiver/store.ts"

/* What every store of the inbox must do, with the database or server that it is for. */

/** A store, and effects that work has in the same place. */
export interface Subject<Tx> {
  readonly store: Store<Tx>
  /** Adds 1 to a counter, within the transaction that the work gets. */
  readonly add: (tx: Tx, counter: string) => Promise<void>
  readonly countOf: (counter: string) => Promise<number>
  readonly close: () => Promise<void>
  /** Whether a receipt waits for at most 2 s for another one of the same event, instead of to its end. */
  readonly isBusyInTime?: boolean
  /** Lets a statement fail within the transaction, as far as the database has such, and says nothing of it. */
  readonly failQuietly?: (tx: Tx) => Promise<unknown>
  /** Rolls the transaction of the work back from within it. */
  readonly rollBack?: (tx: Tx) => Promise<unknown>
  /** Holds the row of an event as a repeat does while it counts its receipt. Returns what lets go of it. */
  readonly hold?: (key: string) => Promise<() => Promise<void>>
  /** Whether work that is aborted can do no more in its transaction. */
  readonly isEndedWhenAborted?: boolean
}

const signal = new AbortController().signal
const limits = { signal, withinMs: 30_000 }
const minuteMs = 60_000

let made = 0
/** A name that no other test uses. */
const fresh = (name: string): string => `${name}-${process.pid}-${++made}`

const entry = (changes: Partial<NewEntry> = {}): NewEntry => ({
  source: "shop",
  key: fresh("key"),
  type: "invoice.paid",
  subject: undefined,
  version: undefined,
  at: 1_700_000_000_123,
  headers: { "content-type": "application/json" },
  contentType: "application/json",
  body: Buffer.from('{"total":12}'),
  keepMs: minuteMs,
  ...changes
})

/** Asks until there is an answer, for what the passing of time brings. */
const eventually = async <A>(ask: () => Promise<A | undefined>): Promise<A> => {
  const deadline = Date.now() + 20_000
  for (;;) {
    const found = await ask()
    if (found !== undefined) return found
    assert.isBelow(Date.now(), deadline, "it did not come to that")
    await setTimeout(5)
  }
}

const idsOf = (entries: ReadonlyArray<Entry>) => entries.map(({ key }) => key)

/** Stories of `once`, which every store must tell. */
const onceStories = <Tx>(subject: () => Subject<Tx>) => {
  const once = (one: NewEntry, counter: string, fails = false) => {
    const { add, store } = subject()
    return store.once(
      one,
      async (tx) => {
        await add(tx, counter)
        if (fails) throw new Error("no")
      },
      limits
    )
  }

  it("does the work of an event once, and counts its receipts", async () => {
    const [one, counter] = [entry(), fresh("counter")]
    assert.deepStrictEqual(await once(one, counter), { outcome: "done" })
    const repeat = await once(one, counter)
    assert.strictEqual(repeat.outcome, "duplicate")
    assert.strictEqual(await subject().countOf(counter), 1)
    assert.deepStrictEqual(
      await subject().store.known("shop", [one.key, "another"]),
      new Set([one.key])
    )
  })

  it("tells events of two sources with the same key apart", async () => {
    const [one, counter] = [entry(), fresh("counter")]
    await once(one, counter)
    assert.deepStrictEqual(await once({ ...one, source: "bank" }, counter), { outcome: "done" })
    assert.strictEqual(await subject().countOf(counter), 2)
  })

  it("does the work once for 20 receipts at the same time", async () => {
    const [one, counter] = [entry(), fresh("counter")]
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => once(one, counter)))
    assert.lengthOf(
      outcomes.filter(({ outcome }) => outcome === "done"),
      1
    )
    assert.isTrue(outcomes.every(({ outcome }) => outcome !== "stale"))
    assert.strictEqual(await subject().countOf(counter), 1)
  })

  it("says busy, or waits, while another receipt of the same event is worked on", async () => {
    const [one, counter] = [entry(), fresh("counter")]
    const { add, isBusyInTime, store } = subject()
    let release: () => void = () => undefined
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    let begin: () => void = () => undefined
    const begun = new Promise<void>((resolve) => {
      begin = resolve
    })
    const first = store.once(
      one,
      async (tx) => {
        await add(tx, counter)
        begin()
        await held
      },
      limits
    )
    await begun
    const second = once(one, counter)
    if (isBusyInTime === true) {
      const { outcome, retryAfterMs } = (await second) as OnceOutcome & { retryAfterMs?: number }
      assert.strictEqual(outcome, "busy")
      assert.isAbove(retryAfterMs ?? 0, 0)
    }
    release()
    assert.strictEqual((await first).outcome, "done")
    if (isBusyInTime !== true) assert.strictEqual((await second).outcome, "duplicate")
    assert.strictEqual((await once(one, counter)).outcome, "duplicate")
    assert.strictEqual(await subject().countOf(counter), 1)
  })

  it("knows nothing of an event whose work fails, and does it at the next receipt", async () => {
    const [one, counter] = [entry(), fresh("counter")]
    const failed = await once(one, counter, true).catch((error: Error) => error.message)
    assert.strictEqual(failed, "no")
    assert.strictEqual((await subject().store.known("shop", [one.key])).size, 0)
    assert.deepStrictEqual(await once(one, counter), { outcome: "done" })
    const isRolledBack = subject().store.guarantee === "exactly-once"
    assert.strictEqual(await subject().countOf(counter), isRolledBack ? 1 : 2)
  })

  it("does not take for done what work that catches an error of a statement has lost", async () => {
    const { add, countOf, failQuietly, store } = subject()
    if (failQuietly === undefined) return
    const [one, counter] = [entry(), fresh("counter")]
    const outcome = await store
      .once(
        one,
        async (tx) => {
          await add(tx, counter)
          await failQuietly(tx)
        },
        limits
      )
      .catch((error: Error) => error.message)
    const isDone = typeof outcome !== "string"
    if (typeof outcome === "string") assert.match(outcome, /transaction|null value/)
    assert.strictEqual(await countOf(counter), isDone ? 1 : 0, `${outcome}`)
    assert.strictEqual((await store.known("shop", [one.key])).size, isDone ? 1 : 0)
    const again = await once(one, counter)
    assert.strictEqual(again.outcome, isDone ? "duplicate" : "done")
    assert.strictEqual(await countOf(counter), 1)
  })

  it("takes nothing of work that is aborted, whatever it goes on with", async () => {
    const { add, countOf, isEndedWhenAborted, store } = subject()
    const [one, counter, later] = [entry(), fresh("counter"), fresh("later")]
    const late = new AbortController()
    let goOn: () => void = () => undefined
    const goesOn = new Promise<void>((resolve) => {
      goOn = resolve
    })
    let gone: Promise<unknown> | undefined
    const aborted = store.once(
      one,
      async (tx) => {
        await add(tx, counter)
        gone = goesOn.then(() => add(tx, later)).catch(() => undefined)
        // SQLite cannot end what is under way: it ends by itself.
        const ending = new Promise<never>((_, reject) => {
          late.signal.addEventListener("abort", () => reject(late.signal.reason))
        })
        late.abort(new Error("it took too long"))
        await ending
      },
      { signal: late.signal, withinMs: 1 }
    )
    const outcome = await aborted.catch((error: Error) => error.message)
    assert.strictEqual(outcome, "it took too long")
    assert.strictEqual((await store.known("shop", [one.key])).size, 0)
    goOn()
    await gone
    if (isEndedWhenAborted === true) {
      assert.strictEqual(await countOf(later), 0)
      assert.strictEqual(await countOf(counter), 0)
    }
    assert.deepStrictEqual(await once(one, counter), { outcome: "done" })
  })

  it("forgets keys when they need not be remembered any more", async () => {
    const [one, counter] = [entry({ keepMs: 1 }), fresh("counter")]
    await once(one, counter)
    const kept = entry()
    await once(kept, counter)
    await eventually(async () => {
      await subject().store.prune(100)
      const known = await subject().store.known("shop", [one.key, kept.key])
      return known.size === 1 && known.has(kept.key) ? true : undefined
    })
    assert.deepStrictEqual(await once(one, counter), { outcome: "done" })
  })
}

/** Stories of versions: a store of keys alone does not know them. */
const versionStories = <Tx>(subject: () => Subject<Tx>) => {
  it("skips what is older than what was done, within a request", async () => {
    const about = fresh("subject")
    const counter = fresh("counter")
    const outcomes: Array<string> = []
    for (const version of [5, 3, 6, 6]) {
      const { add, store } = subject()
      const result = await store.once(
        entry({ subject: about, version }),
        (tx) => add(tx, counter),
        limits
      )
      outcomes.push(result.outcome)
    }
    assert.deepStrictEqual(outcomes, ["done", "stale", "done", "stale"])
    assert.strictEqual(await subject().countOf(counter), 2)
  })

  it("takes the newer version again when the work that recorded it failed", async () => {
    const about = fresh("subject")
    const counter = fresh("counter")
    const { add, store } = subject()
    const failed = store.once(
      entry({ subject: about, version: 9 }),
      () => Promise.reject(new Error("no")),
      limits
    )
    assert.strictEqual(await failed.catch((error: Error) => error.message), "no")
    const older = entry({ subject: about, version: 8 })
    assert.deepStrictEqual(await store.once(older, (tx) => add(tx, counter), limits), {
      outcome: "done"
    })
  })
}

/** Stories of what is stored first and worked on later. */
const queueStories = <Tx>(subject: () => Subject<Tx>) => {
  const queue = (): Queue<Tx> => {
    const { queue } = subject().store
    if (queue === undefined) throw new Error("the store has no queue")
    return queue
  }
  /** A source of its own keeps a test's entries from the claims of others. */
  const claim = (source: string, limit = 10, leaseMs = minuteMs) =>
    queue().claim([source], limit, leaseMs)

  const claimOne = (source: string, leaseMs = minuteMs) =>
    eventually(async () => (await claim(source, 1, leaseMs))[0])

  const work = (one: Entry, counter: string) =>
    queue().work(one, (tx) => subject().add(tx, counter), signal)

  it("stores an event with all that belongs to it, and drops the body when it is done", async () => {
    const source = fresh("source")
    const one = entry({
      ...{ source, subject: "cus_1", version: 7, body: Buffer.from([0, 255, 10, 128]) },
      ...{ key: "schlüssel 🗝 'x' \\ \"y\"", headers: { "x-a": "ü", "content-type": "a/b" } }
    })
    assert.deepStrictEqual(await queue().put([one]), [{ isNew: true, receipts: 1 }])
    assert.deepStrictEqual(await queue().put([one]), [{ isNew: false, receipts: 2 }])
    const other = { ...one, body: Buffer.from("another") }
    assert.deepStrictEqual(await queue().put([other]), [{ isNew: false, receipts: 3 }])
    const claimed = await claimOne(source)
    const { body, keepMs: _, ...rest } = one
    assert.deepInclude(claimed, { ...rest, state: "received", attempts: 1 })
    assert.deepInclude(claimed, { receipts: 3, conflicts: 1 })
    assert.deepStrictEqual(Buffer.from(claimed.body ?? []), body)
    assert.isNumber(claimed.startedAt)
    const counter = fresh("counter")
    assert.strictEqual(await work(claimed, counter), "done")
    assert.strictEqual(await subject().countOf(counter), 1)
    const done = await queue().show(claimed.id)
    assert.deepInclude(done, { state: "done", body: undefined, error: undefined })
    assert.isNumber(done?.finishedAt)
    assert.deepStrictEqual(await queue().put([one]), [{ isNew: false, receipts: 4 }])
    assert.deepStrictEqual(await claim(source), [])
  })

  it("answers a repeat at once, while its event is worked on", async () => {
    if (subject().isBusyInTime !== true) return
    const source = fresh("source")
    const one = entry({ source })
    await queue().put([one])
    const claimed = await claimOne(source)
    let end: () => void = () => undefined
    const ended = new Promise<void>((resolve) => {
      end = resolve
    })
    const repeats: Array<unknown> = []
    const worked = queue().work(
      claimed,
      async () => {
        // Were they to wait for the work, this would never end.
        for (let at = 0; at < 3; at++) repeats.push(...(await queue().put([one])))
        repeats.push(await subject().store.once(one, () => ended, limits))
        end()
      },
      signal
    )
    assert.strictEqual(await worked, "done")
    assert.lengthOf(repeats, 4)
    assert.isTrue(repeats.every((repeat) => (repeat as { isNew?: boolean }).isNew !== true))
    assert.deepInclude(repeats[3], { outcome: "duplicate" })
  })

  it("does work whose row a repeat has just as it begins", async () => {
    const { hold } = subject()
    if (hold === undefined) return
    const [source, counter] = [fresh("source"), fresh("counter")]
    const one = entry({ source })
    await queue().put([one])
    const claimed = await claimOne(source)
    const letGo = await hold(one.key)
    const worked = work(claimed, counter)
    try {
      assert.strictEqual(await Promise.race([worked, setTimeout(100, "waits")]), "waits")
    } finally {
      await letGo()
    }
    assert.strictEqual(await worked, "done")
    assert.strictEqual(await subject().countOf(counter), 1)
    assert.deepInclude(await queue().show(claimed.id), { state: "done", attempts: 1 })
  })

  it("does not take work for done that rolls its transaction back", async () => {
    const { add, rollBack, store } = subject()
    if (rollBack === undefined) return
    const [source, counter] = [fresh("source"), fresh("counter")]
    const run = async (tx: Tx) => {
      await add(tx, counter)
      await rollBack(tx)
    }
    const refused = (work: Promise<unknown>) =>
      work.then(
        () => "done",
        () => "refused"
      )
    const atOnce = entry({ source })
    assert.strictEqual(await refused(store.once(atOnce, run, limits)), "refused")
    assert.deepStrictEqual(await store.known(source, [atOnce.key]), new Set())
    await queue().put([entry({ source })])
    const claimed = await claimOne(source)
    assert.strictEqual(await refused(queue().work(claimed, run, signal)), "refused")
    assert.deepInclude(await queue().show(claimed.id), { state: "received" })
    assert.strictEqual(await subject().countOf(counter), 0)
  })

  it("gives back an attempt that does not count", async () => {
    const source = fresh("source")
    await queue().put([entry({ source })])
    const claimed = await claimOne(source)
    const failure = { kind: "retry", delayMs: 0, error: "no connection" } as const
    assert.isTrue(await queue().fail(claimed, { ...failure, isFree: true }))
    const again = await claimOne(source)
    assert.strictEqual(again.attempts, 1)
    assert.isTrue(await queue().fail(again, failure))
    assert.strictEqual((await claimOne(source)).attempts, 2)
    assert.isFalse(await queue().fail(again, failure))
  })

  it("stores all events of a request", async () => {
    const source = fresh("source")
    const all = [entry({ source }), entry({ source }), entry({ source })]
    const [first, , last] = all
    if (first === undefined || last === undefined) throw new Error("there are three")
    await queue().put([last])
    assert.deepStrictEqual(await queue().put(all), [
      { isNew: true, receipts: 1 },
      { isNew: true, receipts: 1 },
      { isNew: false, receipts: 2 }
    ])
    assert.lengthOf(await claim(source), 3)
  })

  it("gives an event to one claim at a time, and to the next when its lease is over", async () => {
    const source = fresh("source")
    const counter = fresh("counter")
    await queue().put([entry({ source })])
    const first = await claimOne(source, 1)
    const second = await claimOne(source)
    assert.strictEqual(second.id, first.id)
    assert.deepStrictEqual([first.attempts, second.attempts], [1, 2])
    assert.deepStrictEqual(await claim(source), [])
    assert.strictEqual(await work(first, counter), "lost")
    await queue().fail(first, { kind: "dead", error: "too late" })
    assert.strictEqual(await work(second, counter), "done")
    assert.strictEqual(await work(second, counter), "lost")
    assert.strictEqual(await subject().countOf(counter), 1)
  })

  it("gives each event to one of many claims at the same time", async () => {
    const source = fresh("source")
    const all = Array.from({ length: 40 }, () => entry({ source }))
    await queue().put(all)
    const claims = await Promise.all(Array.from({ length: 10 }, () => claim(source, 5)))
    const rest = await claim(source, 100)
    const keys = [...claims.flat(), ...rest].map(({ key }) => key)
    assert.deepStrictEqual([...keys].sort(), all.map(({ key }) => key).sort())
  })

  it("gives the events of named sources only", async () => {
    const [mine, others] = [fresh("source"), fresh("source")]
    await queue().put([entry({ source: others }), entry({ source: mine })])
    assert.deepStrictEqual(
      (await claim(mine)).map(({ source }) => source),
      [mine]
    )
  })

  it("gives events of a subject in order, and those of others meanwhile", async () => {
    const source = fresh("source")
    const counter = fresh("counter")
    const [a1, a2, b1] = [
      entry({ source, subject: "a", key: "a1" }),
      entry({ source, subject: "a", key: "a2" }),
      entry({ source, subject: "b", key: "b1" })
    ]
    await queue().put([a1, a2, b1])
    const first = await claim(source)
    assert.deepStrictEqual(idsOf(first).sort(), ["a1", "b1"])
    const [claimed] = first
    if (claimed === undefined) throw new Error("there are two")
    await queue().fail(claimed, { kind: "retry", delayMs: 0, error: "later" })
    const again = await claimOne(source)
    assert.deepInclude(again, { key: "a1", attempts: 2 })
    assert.deepStrictEqual(await claim(source), [])
    await work(again, counter)
    assert.deepStrictEqual(idsOf(await claim(source)), ["a2"])
  })

  it("wakes the next of a subject at once, however long the line of those behind it is", async () => {
    const source = fresh("source")
    const counter = fresh("counter")
    const inLine = Array.from({ length: 120 }, (_, at) =>
      entry({ source, subject: "a", key: `a${at}` })
    )
    await queue().put([...inLine, entry({ source, subject: "b", key: "b" })])
    assert.deepStrictEqual(idsOf(await claim(source, 1)), ["a0"])
    // The event of another subject is found behind the line, by a few claims.
    const others = [
      ...(await claim(source, 1)),
      ...(await claim(source, 1)),
      ...(await claim(source, 1))
    ]
    assert.deepStrictEqual(idsOf(others), ["b"])
    const [first] = await queue()
      .list({ source, before: undefined, limit: 200 })
      .then((all) => all.filter(({ key }) => key === "a0"))
    if (first === undefined) throw new Error("it is there")
    await work(first, counter)
    assert.deepStrictEqual(idsOf(await claim(source)), ["a1"])
    const [second] = (await queue().list({ source, limit: 200 })).filter(({ key }) => key === "a1")
    if (second === undefined) throw new Error("it is there")
    await queue().fail(second, { kind: "dead", error: "no" })
    assert.deepStrictEqual(idsOf(await claim(source)), ["a2"])
    assert.strictEqual(await subject().countOf(counter), 1)
  })

  it("goes on with a subject whose oldest event is dead", async () => {
    const source = fresh("source")
    await queue().put([
      entry({ source, subject: "a", key: "a1" }),
      entry({ source, subject: "a", key: "a2" })
    ])
    await queue().fail(await claimOne(source), { kind: "dead", error: "no" })
    assert.deepStrictEqual(idsOf(await claim(source)), ["a2"])
  })

  it("keeps nothing of work that fails, and tries again at its time", async () => {
    const source = fresh("source")
    const counter = fresh("counter")
    await queue().put([entry({ source })])
    const claimed = await claimOne(source)
    const failed = await queue()
      .work(
        claimed,
        async (tx) => {
          await subject().add(tx, counter)
          throw new Error("no")
        },
        signal
      )
      .catch((error: Error) => error.message)
    assert.strictEqual(failed, "no")
    if (subject().store.guarantee === "exactly-once")
      assert.strictEqual(await subject().countOf(counter), 0)
    await queue().fail(claimed, { kind: "retry", delayMs: minuteMs, error: "no" })
    assert.deepStrictEqual(await claim(source), [])
    assert.deepInclude(await queue().show(claimed.id), { state: "received", error: "no" })
  })

  it("lets a person retry or give up what is dead", async () => {
    const source = fresh("source")
    const counter = fresh("counter")
    await queue().put([entry({ source, key: "one" }), entry({ source, key: "two" })])
    for (const one of await claim(source)) await queue().fail(one, { kind: "dead", error: "no" })
    const dead = await queue().list({ source, state: "dead" })
    assert.deepStrictEqual(idsOf(dead), ["two", "one"])
    assert.deepStrictEqual(dead[0]?.body, undefined)
    const [two, one] = dead
    if (one === undefined || two === undefined) throw new Error("there are two")
    assert.deepStrictEqual(idsOf(await queue().list({ source, before: two.id })), ["one"])
    assert.deepStrictEqual(idsOf(await queue().list({ source, limit: 1 })), ["two"])
    assert.isTrue(await queue().retry(one.id))
    assert.isFalse(await queue().retry(one.id))
    assert.isTrue(await queue().resolve(two.id, "ada"))
    assert.isFalse(await queue().resolve(two.id, "ada"))
    assert.isFalse(await queue().retry("no id"))
    assert.deepInclude(await queue().show(two.id), { state: "discarded", body: undefined })
    assert.include((await queue().show(two.id))?.error, "ada")
    const again = await claimOne(source)
    assert.deepInclude(again, { key: "one", attempts: 1 })
    assert.strictEqual(await work(again, counter), "done")
    assert.strictEqual(await subject().countOf(counter), 1)
  })

  it("keeps what cannot be read, and replaces it by its events when it can", async () => {
    const source = fresh("source")
    const odd = entry({ source, type: undefined, key: "unreadable" })
    assert.deepStrictEqual(await queue().keep(odd, "quarantined", "no JSON"), {
      isNew: true,
      receipts: 1
    })
    assert.deepStrictEqual(await queue().keep(odd, "quarantined", "no JSON"), {
      isNew: false,
      receipts: 2
    })
    const [kept] = await queue().list({ source, state: "quarantined" })
    assert.deepInclude(kept, { type: undefined, error: "no JSON" })
    assert.isTrue(await queue().retry(kept?.id ?? ""))
    const claimed = await claimOne(source)
    assert.deepStrictEqual(Buffer.from(claimed.body ?? []), odd.body)
    const readable = [entry({ source, key: "r1" }), entry({ source, key: "r2" })]
    assert.strictEqual(await queue().replace(claimed, readable), "done")
    assert.strictEqual(await queue().replace(claimed, readable), "lost")
    assert.deepStrictEqual(idsOf(await claim(source)).sort(), ["r1", "r2"])
  })

  it("skips what is older than what was done, in the background", async () => {
    const source = fresh("source")
    const counter = fresh("counter")
    const outcomes: Array<string> = []
    for (const version of [5, 3, 6]) {
      await queue().put([entry({ source, subject: "a", version })])
      outcomes.push(await work(await claimOne(source), counter))
    }
    assert.deepStrictEqual(outcomes, ["done", "stale", "done"])
    assert.strictEqual(await subject().countOf(counter), 2)
  })

  it("counts what came, what waits and how long it took", async () => {
    const source = fresh("source")
    const [done, dead, open] = [entry({ source }), entry({ source }), entry({ source })]
    await queue().put([done])
    await queue().put([done])
    await work(await claimOne(source), fresh("counter"))
    await queue().put([dead])
    const first = await claimOne(source)
    await queue().fail(first, { kind: "retry", delayMs: 0, error: "no" })
    await queue().fail(await claimOne(source), { kind: "dead", error: "no" })
    await queue().put([open])
    const counts = await queue().counts(source, minuteMs)
    assert.deepStrictEqual(counts.byState, {
      ...{ received: 1, done: 1, stale: 0, dead: 1, quarantined: 0, discarded: 0 }
    })
    assert.deepStrictEqual(counts.attempts, { 1: 1, 2: 1 })
    assert.strictEqual(counts.repeats, 1)
    assert.isAtLeast(counts.timeToDone?.p95 ?? -1, counts.timeToDone?.p50 ?? 0)
    assert.isAtLeast(counts.queueDelay?.p50 ?? -1, 0)
    const waiting = (await queue().waiting()).find((one) => one.source === source)
    assert.deepInclude(waiting, { source, received: 1, dead: 1, quarantined: 0 })
    assert.isAtLeast(waiting?.oldestWaitsMs ?? -1, 0)
  })

  it("keeps what is dead, however old it is", async () => {
    const source = fresh("source")
    await queue().put([entry({ source, keepMs: 1 }), entry({ source, keepMs: 1 })])
    const [dead, done] = await claim(source)
    if (dead === undefined || done === undefined) throw new Error("there are two")
    await queue().fail(dead, { kind: "dead", error: "no" })
    await work(done, fresh("counter"))
    await eventually(async () => {
      await subject().store.prune(100)
      return (await queue().show(done.id)) === undefined ? true : undefined
    })
    assert.deepInclude(await queue().show(dead.id), { state: "dead" })
  })
}

/**
 * Tells the stories of a store.
 *
 * @param skipped why they cannot be told here.
 */
export const conformance = <Tx>(
  title: string,
  skipped: string | undefined,
  make: () => Promise<Subject<Tx>>,
  keepsEvents = true
) => {
  describe.skipIf(skipped !== undefined)(title, () => {
    let made: Subject<Tx> | undefined
    const subject = () => {
      if (made === undefined) throw new Error("the store was not made")
      return made
    }
    beforeAll(async () => {
      made = await make()
      // Two processes of an application begin at the same time, and a third later.
      await Promise.all([made.store.migrate(), made.store.migrate()])
      await made.store.migrate()
    })
    afterAll(() => made?.close())
    onceStories(subject)
    if (keepsEvents) {
      versionStories(subject)
      queueStories(subject)
    }
  })
}
