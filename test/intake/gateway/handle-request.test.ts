import { EventEmitter } from "node:events"
import type { IncomingMessage, ServerResponse } from "node:http"
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { onTestFinished } from "vitest"
import { Connections } from "../../../src/connections/connections.ts"
import { Source } from "../../../src/domain/source.ts"
import { Admission, defaultBounds } from "../../../src/intake/gateway/admission.ts"
import { GatewayCounts } from "../../../src/intake/gateway/counts.ts"
import { makeHandler } from "../../../src/intake/gateway/handle-request.ts"
import { SourceTable } from "../../../src/intake/gateway/live-sources.ts"
import { Refusals } from "../../../src/intake/gateway/refusals.ts"
import { systemTimers, useTimers } from "../../../src/time/timers.ts"

const encode = Schema.encodeSync(Schema.fromJsonString(Source))

/** A gateway without a single place, and timers that run when the test says so. */
const setUp = () => {
  const due: Array<{ readonly ms: number; readonly run: () => void }> = []
  const after = (ms: number, run: () => void) => {
    due.push({ ms, run })
    return { unref: () => undefined }
  }
  onTestFinished(useTimers({ ...systemTimers, after: after as typeof systemTimers.after }))
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
  const bounds = { ...defaultBounds, requests: 0 }
  const state = { isStopping: false }
  const admission = new Admission(bounds)
  const handle = makeHandler({
    ...{ admission, bounds, counts: new GatewayCounts(), maxBytes: 1_000, scheme: "http" },
    connections: new Connections({
      ...{ max: 8, isPlain: true, crowded: "" },
      refused: () => undefined
    }),
    isStopping: () => state.isStopping,
    refusals: new Refusals(),
    sources: () => sources,
    run: () => Promise.reject(new Error("nothing is taken"))
  })
  const answered: Array<number> = []
  const ask = () => {
    const request = { url: "/in/acme/hub", headers: { "content-length": "2" }, complete: false }
    const response = Object.assign(new EventEmitter(), {
      ...{ headersSent: false, destroyed: false, end: () => undefined },
      writeHead: (status: number) => answered.push(status)
    })
    handle(request as unknown as IncomingMessage, response as unknown as ServerResponse)
  }
  return { admission, answered, ask, due, state }
}

describe("a request for which there is no place", () => {
  it("is refused 20 ms later, so that its connection brings no more than 50 a second", () => {
    const { answered, ask, due } = setUp()
    ask()
    assert.deepStrictEqual(answered, [])
    assert.deepStrictEqual(
      due.map(({ ms }) => ms),
      [20]
    )
    due[0]?.run()
    assert.deepStrictEqual(answered, [503])
  })

  it("is refused at once where 1,024 others wait for that, where the gateway stops, and where the broker is silent", () => {
    const { admission, answered, ask, due, state } = setUp()
    for (let n = 0; n < 1_024; n++) ask()
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
})
