/*
 * What `--adapt on` does: two endpoints with the same receiver, which serves so many requests at a
 * time and refuses what finds no place; half of its places go away for a while.
 *   npm run bench:adaptive
 * Takes half a minute. The picture is docs/adaptive.svg.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import type { Server } from "node:http"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import { Broker } from "../src/broker/connection.ts"
import { startEmbedded } from "../src/broker/embedded.ts"
import { init } from "../src/broker/init.ts"
import { defaultTopology } from "../src/broker/topology.ts"
import { addEndpoint } from "../src/delivery/endpoints/endpoint-store.ts"
import { Endpoint } from "../src/domain/endpoint.ts"
import { picture } from "./picture.ts"
import { startWorker } from "./processes.ts"

const seconds = 30
/** How long a request is served, ms. */
const service = 20
const cap = 40
/** Requests that are served at the same time, by the second. */
const placesAt = (second: number): number => (second < 10 || second >= 20 ? 16 : 8)
/** Events a second: about what the receiver takes while it has all its places. */
const load = 600

const modes = ["off", "on"] as const
type Mode = (typeof modes)[number]

/** What a receiver saw within a second. */
interface Seen {
  readonly mode: Mode
  readonly second: number
  readonly what: "in flight" | "refused" | "served"
  readonly value: number
}

const begun = performance.now()
const now = () => (performance.now() - begun) / 1000

const receiver = async (mode: Mode) => {
  const seen = Array.from({ length: seconds }, () => ({ most: 0, refused: 0, served: 0 }))
  let inFlight = 0
  const server: Server = createServer((request, response) => {
    request.resume()
    inFlight++
    const at = seen[Math.floor(now() - offset)]
    const fits = inFlight <= placesAt(now() - offset)
    if (at !== undefined) {
      at.most = Math.max(at.most, inFlight)
      if (fits) at.served++
      else at.refused++
    }
    setTimeout(
      () => {
        inFlight--
        response.writeHead(fits ? 200 : 429).end()
      },
      fits ? service : 1
    )
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  return {
    mode,
    url: `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}/`,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
    seen: (): ReadonlyArray<Seen> =>
      seen.flatMap(({ most, refused, served }, second) => [
        { mode, second, what: "in flight", value: most },
        { mode, second, what: "refused", value: refused },
        { mode, second, what: "served", value: served }
      ])
  }
}

let offset = 0
const decode = Schema.decodeUnknownSync(Endpoint)
const endpointFor = (mode: Mode, url: string) =>
  decode({
    v: 1,
    tenant: "bench",
    id: mode,
    generation: "bench",
    url,
    types: [">"],
    sign: "standard",
    secrets: [{ value: `whsec_${Buffer.alloc(32, 7).toString("base64")}`, createdAt: 0 }],
    retry: {
      backoff: { kind: "fixed", delay: "1 second" },
      jitter: "full",
      maxAttempts: 100,
      window: "1 hour",
      retryAfterCap: "1 hour"
    },
    circuit: { failures: 1000, rate: "none" },
    maxInFlight: cap,
    adapt: mode === "on",
    redirects: 0,
    headers: {},
    createdAt: 0,
    updatedAt: 0
  })

const publishAll = Effect.gen(function* () {
  const { names, publisher } = yield* Broker
  const subject = `${names.eventRoot}.bench.tick`
  let sent = 0
  while (now() - offset < seconds) {
    const due = Math.floor((now() - offset) * load)
    const batch = Array.from({ length: due - sent }, (_, n) =>
      publisher.publish(subject, new TextEncoder().encode("{}"), [["Nats-Msg-Id", `e${sent + n}`]])
    )
    sent = due
    yield* Effect.all(batch, { concurrency: "unbounded", discard: true })
    yield* Effect.sleep("10 millis")
  }
})

const main = Effect.gen(function* () {
  const dataDir = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "petrel-bench-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )
  const receivers = yield* Effect.promise(() => Promise.all(modes.map(receiver)))
  const broker = yield* startEmbedded({ port: 0, dataDir })
  yield* Effect.gen(function* () {
    yield* init(defaultTopology)
    for (const { mode, url } of receivers) yield* addEndpoint(endpointFor(mode, url))
    yield* startWorker(broker.url)
    offset = now()
    yield* publishAll
  }).pipe(Effect.provide(Broker.layer(broker)))
  const seen = receivers.flatMap((each) => each.seen())
  for (const each of receivers) each.close()
  for (const mode of modes) {
    const sum = (what: Seen["what"]) =>
      seen.filter((it) => it.mode === mode && it.what === what).reduce((a, b) => a + b.value, 0)
    console.log(`adapt ${mode}: ${sum("served")} served, ${sum("refused")} refused`)
  }
  const svg = yield* Effect.promise(() =>
    picture({
      data: { values: [...seen] },
      columns: 1,
      facet: { field: "what", title: null, sort: ["in flight", "refused", "served"] },
      spec: {
        width: 560,
        height: 120,
        mark: { type: "line", interpolate: "step-after" },
        encoding: {
          x: { field: "second", type: "quantitative", title: "second" },
          y: { field: "value", type: "quantitative", title: null },
          color: {
            field: "mode",
            title: "--adapt",
            scale: { domain: ["off", "on"], range: ["#9aa5b1", "#d9480f"] }
          }
        }
      },
      resolve: { scale: { y: "independent" } },
      title: {
        text: "A receiver that serves 16 requests at a time, 8 from second 10 to 20, and refuses the rest",
        subtitle: `${load} events a second, cap ${cap}; per second: most requests at once, refused with 429, served`
      }
    })
  )
  writeFileSync(new URL("../docs/adaptive.svg", import.meta.url), svg)
}).pipe(Effect.scoped)

await Effect.runPromise(main)
