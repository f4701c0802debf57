import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { type Client, httpClient, type LiveMessage } from "../../src/client/client.ts"
import { serverEvents } from "../../src/client/live.ts"
import { nth } from "../kit/engine.ts"
import { clientOf, inOrder, problem, rejected } from "./answering.ts"

const text =
  ': following\nretry: 1\n\nid: 7\n\nevent: failure\nid: 8\ndata: {"seq":8,"kind":"dead-lettered","why":"ü"}\n\nevent: dropped\ndata: {"dropped":null,"why":"slow"}\n\nevent: fai'

async function* inPieces(bytes: Uint8Array, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.slice(at, at + size)
}

const streamed = (body: string) => ({ headers: { "content-type": "text/event-stream" }, body })

describe("following failures with the client", () => {
  it("reads a stream however it is cut", async () => {
    const bytes = Buffer.from(text, "utf8")
    for (const size of [1, 2, 3, 7, bytes.length]) {
      const found = []
      for await (const event of serverEvents(inPieces(bytes, size))) found.push(event)
      assert.deepStrictEqual(
        found.map(({ data, id, name, retryMs }) => [name, id, retryMs, data]),
        [
          ["message", undefined, 100, ""],
          ["message", "7", undefined, ""],
          ["failure", "8", undefined, '{"seq":8,"kind":"dead-lettered","why":"ü"}'],
          ["dropped", undefined, undefined, '{"dropped":null,"why":"slow"}']
        ]
      )
    }
  })

  it("takes no pause from a server that is none", async () => {
    for (const retry of ["0", "-1", "soon", ""]) {
      const pauses = []
      for await (const event of serverEvents(inPieces(Buffer.from(`retry: ${retry}\n\n`), 99)))
        pauses.push(event.retryMs)
      assert.deepStrictEqual(pauses, [retry === "0" ? 100 : undefined], retry)
    }
  })

  it.live("comes back where it was, and ends with a refusal", () =>
    Effect.gen(function* () {
      const { petrel, requests } = yield* clientOf(
        inOrder(streamed(text), problem(503, "unavailable"), problem(403, "forbidden"))
      )
      const live = petrel.live({ endpoint: "billing" })
      const heard: Array<LiveMessage> = []
      const error = yield* Effect.promise(() =>
        rejected(
          (async () => {
            for await (const one of live) heard.push(one)
          })()
        )
      )
      assert.deepInclude(error, { code: "forbidden" })
      assert.deepStrictEqual(heard, [
        { tells: "failure", seq: 8, failure: { kind: "dead-lettered", why: "ü" } },
        { tells: "dropped", dropped: null, why: "slow" }
      ])
      assert.strictEqual(live.lastEventId, "8")
      assert.deepStrictEqual(
        requests.map(({ headers, path }) => [path, headers["last-event-id"]]),
        [undefined, "8", "8"].map((id) => ["/v1/tenants/acme/live?endpoint=billing", id])
      )
    })
  )

  it.live("ends its connection when nobody listens any more", () =>
    Effect.gen(function* () {
      const { petrel, quiet, requests } = yield* clientOf((_, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" })
        response.write(text)
        return undefined
      })
      yield* Effect.promise(async () => {
        for await (const _ of petrel.live({}, { lastEventId: "5" })) break
      })
      yield* quiet
      assert.strictEqual(nth(requests, 0).headers["last-event-id"], "5")
      const controller = new AbortController()
      const listening = async () => {
        for await (const _ of petrel.live({}, { signal: controller.signal }))
          controller.abort(new Error("enough"))
      }
      const error = yield* Effect.promise(() => rejected(listening()))
      assert.deepStrictEqual(error, new Error("enough"))
      yield* quiet
    })
  )

  it.live("is connected once it has a position, which a server without its broker has not", () =>
    Effect.gen(function* () {
      const { petrel, requests } = yield* clientOf((_, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" })
        response.end(requests.length < 3 ? ": following\nretry: 100\n\n" : text)
        return undefined
      })
      const told: Array<boolean> = []
      const onConnected = (is: boolean) => told.push(is)
      yield* Effect.promise(async () => {
        for await (const _ of petrel.live({}, { onConnected })) break
      })
      assert.deepStrictEqual(told, [false, false, true, false])
    })
  )

  it.live("ends with what the program's own functions throw", () =>
    Effect.gen(function* () {
      const { petrel, quiet, requests, url } = yield* clientOf((_, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" })
        response.write(text)
        return undefined
      })
      const own = new Error("it is the program's own")
      const fail = (): never => {
        throw own
      }
      const listening = async (client: Client, onConnected?: () => void) => {
        for await (const _ of client.live({}, { onConnected }));
      }
      const untold = yield* Effect.promise(() => rejected(listening(petrel, fail)))
      assert.strictEqual(untold, own)
      yield* quiet
      const sealed = httpClient({ url, tenant: "acme", token: fail })
      assert.strictEqual(yield* Effect.promise(() => rejected(listening(sealed))), own)
      const broken = httpClient({ url, tenant: "acme", token: "a\nb" })
      const refused = yield* Effect.promise(() => rejected(listening(broken)))
      assert.match(String(refused), /^TypeError: deliveries\.live: the token has a character/)
      assert.lengthOf(requests, 1)
    })
  )
})
