import { EventEmitter } from "node:events"
import type { IncomingMessage, ServerResponse } from "node:http"
import { Schema } from "effect"
import type { Connections } from "../../src/connections/connections.ts"
import { Source } from "../../src/domain/source.ts"
import { Admission, defaultBounds } from "../../src/intake/gateway/admission.ts"
import type { Answer } from "../../src/intake/gateway/answer.ts"
import { GatewayCounts } from "../../src/intake/gateway/counts.ts"
import { makeHandler } from "../../src/intake/gateway/handle-request.ts"
import { SourceTable } from "../../src/intake/gateway/live-sources.ts"
import { Refusals } from "../../src/intake/gateway/refusals.ts"
import { StoreWatch } from "../../src/intake/gateway/store-watch.ts"

const encode = Schema.encodeSync(Schema.fromJsonString(Source))

/**
 * What handles a gateway's requests, without sockets and broker: the source is `acme/hub`.
 *
 * @param requests places of the gateway. (Default: as many as `petrel ingest` has)
 * @param take takes a request that has a place.
 */
export const bareHandler = (take: () => Promise<Answer>, requests = defaultBounds.requests) => {
  const sources = new SourceTable(() => Promise.reject(new Error("none is asked for")))
  const secrets = [{ value: "s", createdAt: 0 }]
  sources.hear(
    "acme.hub",
    encode({
      ...{ v: 1, tenant: "acme", id: "hub", provider: "github", secrets },
      ...{ createdAt: 0, updatedAt: 0 }
    })
  )
  const bounds = { ...defaultBounds, requests }
  const state = { isStopping: false }
  const admission = new Admission(bounds)
  const handle = makeHandler({
    ...{ admission, bounds, counts: new GatewayCounts(), maxBytes: 1_000, scheme: "http" },
    connections: { begin: () => undefined, recognize: () => undefined } as unknown as Connections,
    isStopping: () => state.isStopping,
    refusals: new Refusals(),
    store: new StoreWatch(admission, bounds.silentMs),
    sources: () => sources,
    run: take as never
  })
  /** Hands over a request whose body is there. Returns its response. */
  const ask = (answered: (status: number) => void) => {
    const headers = { "content-length": "2" }
    const request = Object.assign(new EventEmitter(), { url: "/in/acme/hub", headers, socket: {} })
    request.on("newListener", (name) => {
      if (name === "end") queueMicrotask(() => request.emit("end"))
    })
    const response = Object.assign(new EventEmitter(), {
      ...{ headersSent: false, destroyed: false, end: () => undefined, destroy: () => undefined },
      writeHead: answered
    })
    handle(request as unknown as IncomingMessage, response as unknown as ServerResponse)
    return response
  }
  return { admission, ask, state }
}
