import { assert, describe, it } from "@effect/vitest"
import { maxConcurrentStores } from "../../src/routing/fan-out.ts"
import type { DirectEnd } from "../../src/routing/partition-owner.ts"
import type { RoutingProgress } from "../../src/routing/routing-progress.ts"
import { withVirtualTime } from "../kit/moved-time.ts"
import type { World } from "./made-fan-out.ts"
import { fanOutTo, safeRepublishMs } from "./made-fan-out.ts"
import { endpointIds, storeFailure } from "./made-routing.ts"

const failed: DirectEnd & { readonly _tag: "Failed" } = {
  _tag: "Failed",
  progress: { attempts: 1, lastStatus: 503 },
  leavesBody: false
}
const delivered: DirectEnd = { _tag: "Delivered" }
const untried: DirectEnd = { _tag: "Untried" }
const unknown: DirectEnd = { _tag: "Unknown" }

/** What recovery gets to know, as text: who has the delivery, and whose delivery is to be located. */
const handedOver = (end: "complete" | RoutingProgress | undefined) => {
  if (end === undefined || end === "complete") return end ?? "under way"
  const list = (ids: Iterable<string> = ["all"]) => [...ids].join(" ")
  return end.known === undefined
    ? `nothing known, asked: ${end.asked !== undefined}`
    : `sent: ${list(end.known.sent)}; tried: ${list(end.tried)}`
}

describe("where the delivery of an event goes", () => {
  const ends = (how: DirectEnd) => ({ direct: () => how })
  const nobody = "sent: ; tried: "

  for (const [what, world, log, end] of [
    ["directly", ends(delivered), ["attempt hook"], "complete"],
    ["into the queue where it is not taken", {}, ["queue hook"], "complete"],
    ["into the backlog where it may wait", { backlog: "stored" }, ["backlog hook"], "complete"],
    ["into the queue from a lane", ends(untried), ["attempt hook", "queue hook"], "complete"],
    [
      "into the backlog from a lane",
      { ...ends(untried), backlog: "stored" },
      ["attempt hook", "backlog hook"],
      "complete"
    ],
    [
      "into the queue after a failure, though a backlog would take it",
      { ...ends(failed), backlog: "stored" },
      ["attempt hook", "queue hook after 1"],
      "complete"
    ],
    [
      "into the queue without its body after a failure, where that is left in its event",
      ends({ ...failed, leavesBody: true }),
      ["attempt hook", "queue hook after 1 without its 2 bytes"],
      "complete"
    ],
    ["nowhere where its end is not known", ends(unknown), ["attempt hook"], `${nobody}hook`],
    ["nowhere where it is refused", { queue: storeFailure("rejected") }, ["queue hook"], nobody],
    [
      "perhaps into the queue, where the broker does not answer",
      { queue: storeFailure("timeout") },
      ["queue hook"],
      `${nobody}hook`
    ],
    [
      "perhaps into the backlog, where that fails",
      { backlog: "unknown" },
      ["backlog hook"],
      `${nobody}hook`
    ]
  ] satisfies ReadonlyArray<readonly [string, Partial<World>, ReadonlyArray<string>, string]>)
    it(what, () => {
      const done = fanOutTo(["hook"], world)
      assert.deepStrictEqual(done.log, log)
      assert.deepStrictEqual(done.ends.map(handedOver), [end])
    })

  it("is asked of recovery where it ended too late", () => {
    for (const [how, end] of [
      [delivered, "complete"],
      [untried, `${nobody}hook`],
      [failed, `${nobody}hook`]
    ] as const)
      withVirtualTime((time) => {
        const late = fanOutTo(["hook"], { direct: () => "under way" })
        time.runs(safeRepublishMs)
        late.end("hook", how)
        assert.deepStrictEqual(late.log, ["attempt hook"])
        assert.deepStrictEqual(late.ends.map(handedOver), [end], how._tag)
        late.close()
      })
  })

  it("is asked of recovery where another router may have had the event meanwhile", () => {
    for (const [how, end] of [
      [delivered, "complete"],
      [untried, `${nobody}hook`],
      [failed, `${nobody}hook`]
    ] as const) {
      let isRedelivered = false
      const hook = fanOutTo(["hook"], {
        direct: () => "under way",
        mayBeRedelivered: () => isRedelivered
      })
      assert.isFalse(hook.direct.get("hook")?.mayBeRedelivered)
      isRedelivered = true
      assert.isTrue(hook.direct.get("hook")?.mayBeRedelivered)
      hook.end("hook", how)
      assert.deepStrictEqual(hook.log, ["attempt hook"])
      assert.deepStrictEqual(hook.ends.map(handedOver), [end], how._tag)
      hook.close()
    }
  })

  it("is known where only its store was late, and nothing else begins", () =>
    withVirtualTime((time) => {
      const ids = endpointIds(maxConcurrentStores + 1)
      const late = fanOutTo(ids, { queue: "no answer yet" })
      time.runs(safeRepublishMs)
      for (const answer of late.answers) answer()
      assert.lengthOf(late.queued, maxConcurrentStores)
      const sent = ids.slice(0, -1).join(" ")
      assert.deepStrictEqual(late.ends.map(handedOver), [`sent: ${sent}; tried: `])
      late.close()
    }))
})

describe("a plan that no fact holds yet", () => {
  const uncommitted = { isPlanStored: false }

  it("is left to the outcome of a direct delivery", () => {
    const { ends, log } = fanOutTo(["hook"], { ...uncommitted, direct: () => delivered })
    assert.deepStrictEqual(log, ["attempt hook"])
    assert.deepStrictEqual(ends, ["complete"])
  })

  it("is stored before a delivery is", () => {
    const ways: ReadonlyArray<World["direct"]> = [() => "not taken", () => untried]
    for (const direct of ways) {
      const { ends, log } = fanOutTo(["hook"], { ...uncommitted, direct })
      assert.deepStrictEqual(log.slice(-2), ["plan", "queue hook"])
      assert.deepStrictEqual(ends, ["complete"])
    }
  })

  it("is handed over with the event where the history refuses it: no delivery is stored", () => {
    const { ends, log } = fanOutTo(["hook"], { ...uncommitted, history: "refuses" })
    assert.deepStrictEqual(log, ["plan"])
    assert.deepStrictEqual(ends.map(handedOver), ["nothing known, asked: true"])
  })
})

describe("the deliveries of one event", () => {
  it("end it once, though each ends as it begins, and however many there are", () => {
    for (const world of [{ direct: () => delivered }, { direct: () => untried }, {}]) {
      const { ends } = fanOutTo(endpointIds(20_000), world)
      assert.deepStrictEqual(ends, ["complete"])
    }
  })

  it("are attempted or stored so many at the same time, and the next as one ends", () => {
    const ids = endpointIds(maxConcurrentStores + 2)
    const stores = fanOutTo(ids, { queue: "no answer yet" })
    assert.lengthOf(stores.queued, maxConcurrentStores)
    stores.answers[0]?.()
    assert.lengthOf(stores.queued, maxConcurrentStores + 1)
    const attempts = fanOutTo(ids, { direct: () => "under way" })
    assert.strictEqual(attempts.direct.size, maxConcurrentStores)
    attempts.end(ids[0] ?? "", delivered)
    assert.strictEqual(attempts.direct.size, maxConcurrentStores + 1)
    attempts.close()
  })

  it("go into queues where too many bytes are in direct delivery", () => {
    const { log } = fanOutTo(["a", "b"], { direct: () => "under way", bytes: 2 })
    assert.deepStrictEqual(log, ["attempt a", "queue b"])
  })

  it("go on in recovery after a failure, once those under way have ended", () => {
    const ids = endpointIds(maxConcurrentStores + 1)
    const [first = "", ...others] = ids
    const { end, ends, direct } = fanOutTo(ids, { direct: () => "under way" })
    end(first, unknown)
    assert.strictEqual(direct.size, maxConcurrentStores, "nothing else begins")
    assert.deepStrictEqual(ends, [])
    for (const id of direct.keys()) if (id !== first) end(id, delivered)
    const sent = others.slice(0, -1).join(" ")
    assert.deepStrictEqual(ends.map(handedOver), [`sent: ${sent}; tried: ${first}`])
  })

  it("make place for others when they are slow", () =>
    withVirtualTime((time) => {
      const ids = endpointIds(maxConcurrentStores + 2)
      const { close, direct, slow } = fanOutTo(ids, { direct: () => "under way" })
      for (const delivery of direct.values()) delivery.begun()
      time.runs(15)
      assert.deepStrictEqual(slow, [])
      time.runs(15)
      assert.deepStrictEqual(slow, [ids.length])
      assert.strictEqual(direct.size, ids.length)
      close()
    }))

  it("end once each: a second end, or a request after it, is logged and changes nothing", () => {
    const { defects, direct, end, ends } = fanOutTo(["a", "b"], { direct: () => "under way" })
    direct.get("a")?.begun()
    direct.get("a")?.begun()
    end("a", delivered)
    end("a", unknown)
    direct.get("a")?.begun()
    assert.deepStrictEqual(ends, [])
    assert.strictEqual(defects.count("cannot do"), 3)
    end("b", delivered)
    assert.deepStrictEqual(ends, ["complete"])
  })
})
