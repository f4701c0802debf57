import { EventEmitter } from "node:events"
import type { IncomingMessage, ServerResponse } from "node:http"
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { onTestFinished } from "vitest"
import type { Connections } from "../../../src/connections/connections.ts"
import { Source } from "../../../src/domain/source.ts"
import { Admission, defaultBounds } from "../../../src/intake/gateway/admission.ts"
import type { Answer } from "../../../src/intake/gateway/answer.ts"
import { GatewayCounts } from "../../../src/intake/gateway/counts.ts"
import { makeHandler } from "../../../src/intake/gateway/handle-request.ts"
import { SourceTable } from "../../../src/intake/gateway/live-sources.ts"
import { Refusals } from "../../../src/intake/gateway/refusals.ts"
import { systemTimers, useTimers } from "../../../src/time/timers.ts"

const encode = Schema.encodeSync(Schema.fromJsonString(Source))

/** A gateway with few places, timers that run when the test says so, and requests that end so, too. */
const setUp = (requests = 0) => {
  const due: Array<{ readonly ms: number; readonly run: () => void }> = []
  const after = (ms: number, run: () => void) => {
    due.push({ ms, run })
    return { unref: () => undefined }
  }
  const cancelled: Array<unknown> = []
  onTestFinished(
    useTimers({
      ...systemTimers,
      after: after as typeof systemTimers.after,
      cancel: (timer) => cancelled.push(timer)
    })
  )
  const answered: Array<number> = []
  /** Answers the requests that have a place. */
  const underWay: Array<(answer: Answer) => void> = []
  const sources = new SourceTable(() => Promise.reject(new Error("none is asked for")))
  const source = encode({
    ...{
      v: 1,
      tenant: "acme",
      id: "hub",
      provider: "github",
      secrets: [{ value: "s", createdAt: 0 }]
    },
    ...{ createdAt: 0, updatedAt: 0 }
  })
  sources.hear("acme.hub", source)
  assert.strictEqual(sources.size, 1)
  const bounds = { ...defaultBounds, requests }
  const state = { isStopping: false }
  const admission = new Admission(bounds)
  const handle = makeHandler({
    ...{ admission, bounds, counts: new GatewayCounts(), maxBytes: 1_000, scheme: "http" },
    connections: { begin: () => undefined, recognize: () => undefined } as unknown as Connections,
    isStopping: () => state.isStopping,
    refusals: new Refusals(),
    sources: () => sources,
    run: (() => new Promise<Answer>((resolve) => underWay.push(resolve))) as never
  })
  const ask = () => {
    const headers = { "content-length": "2" }
    const request = Object.assign(new EventEmitter(), { url: "/in/acme/hub", headers, socket: {} })
    request.on("newListener", (name) => {
      if (name === "end") queueMicrotask(() => request.emit("end"))
    })
    const response = Object.assign(new EventEmitter(), {
      ...{ headersSent: false, destroyed: false, end: () => undefined, destroy: () => undefined },
      writeHead: (status: number) => answered.push(status)
    })
    handle(request as unknown as IncomingMessage, response as unknown as ServerResponse)
    return response
  }
  return { admission, answered, ask, due, state, underWay }
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))
const taken: Answer = { status: 200, outcome: "taken" }

describe("a request for which there is no place", () => {
  it("waits for one for 25 ms, and then is refused", () => {
    const { answered, ask, due } = setUp()
    ask()
    assert.deepStrictEqual(answered, [])
    assert.deepStrictEqual(
      due.map(({ ms }) => ms),
      [25]
    )
    due[0]?.run()
    assert.deepStrictEqual(answered, [503])
  })

  it("is refused at once where 512 others of its source wait, where the gateway stops, and where the broker is silent", () => {
    const { admission, answered, ask, due, state } = setUp()
    for (let n = 0; n < 512; n++) ask()
    assert.deepStrictEqual(answered, [])
    ask()
    assert.deepStrictEqual(answered, [503])
    due[0]?.run()
    ask()
    assert.lengthOf(answered, 2)
    state.isStopping = true
    due[1]?.run()
    ask()
    assert.lengthOf(answered, 4)
    state.isStopping = false
    due[2]?.run()
    admission.unanswered()
    ask()
    assert.lengthOf(answered, 6)
  })

  it("gets one that becomes free, before others that come later", async () => {
    // One source may have a quarter of 4 places.
    const { answered, ask, due, underWay } = setUp(4)
    ask()
    await turn()
    assert.lengthOf(underWay, 1)
    const gone = ask()
    ask()
    ask()
    await turn()
    assert.lengthOf(underWay, 1)
    assert.deepStrictEqual(answered, [])
    gone.destroyed = true
    underWay[0]?.(taken)
    await turn()
    assert.deepStrictEqual(answered, [200])
    assert.lengthOf(underWay, 2)
    // Those that wait go first.
    ask()
    underWay[1]?.(taken)
    await turn()
    assert.lengthOf(underWay, 3)
    due[3]?.run()
    assert.deepStrictEqual(answered, [200, 200, 503])
    underWay[2]?.(taken)
    await turn()
    assert.deepStrictEqual(answered, [200, 200, 503, 200])
    assert.lengthOf(underWay, 3)
  })
})
