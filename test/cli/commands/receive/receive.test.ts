import { createServer } from "node:http"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { makeSigner } from "../../../../src/endpoints/signing.ts"
import { nth, secret } from "../../../kit/engine.ts"
import { receiver } from "../../../kit/receiver.ts"
import { parse } from "../../command-line.ts"
import { run } from "../../in-process.ts"
import { start } from "../../running.ts"

/** Starts `petrel receive` on a free port. */
const receiving = Effect.fnUntraced(function* (...args: ReadonlyArray<string>) {
  const running = yield* start("receive", "--port", "0", "--json", ...args)
  yield* running.until((lines) => lines.length > 0)
  const { url } = parse(nth(running.out, 0)) as { url: string }
  return { running, url }
})

const send = Effect.fnUntraced(function* (url: string, id: string, body = '{"n":1}') {
  const signer = yield* makeSigner({
    scheme: "standard",
    secrets: [{ value: secret, createdAt: 0 }]
  })
  const now = Date.now()
  const pairs = signer.sign(id, "invoice.paid", Math.floor(now / 1000), Buffer.from(body), now)
  const headers = Object.fromEntries(
    pairs.flatMap((name, n) => (n % 2 === 0 ? [[name, pairs[n + 1] ?? ""]] : []))
  )
  return yield* Effect.promise(() =>
    fetch(url, { method: "POST", headers, body }).then(
      async (answer) => ({
        status: answer.status,
        retryAfter: answer.headers.get("retry-after"),
        text: await answer.text()
      }),
      () => "no answer" as const
    )
  )
})

describe("petrel receive", () => {
  it.live("verifies, counts repeats, and fails as it is told", () =>
    Effect.gen(function* () {
      const flags = ["--fail", "1", "--status", "429", "--retry-after", "7", "--secret", secret]
      const { running, url } = yield* receiving(...flags)
      assert.deepInclude(yield* send(url, "evt_1"), { status: 429, retryAfter: "7" })
      assert.deepInclude(yield* send(url, "evt_1"), { status: 200, retryAfter: null })
      assert.deepInclude(yield* send(url, "evt_2"), { status: 429 })
      yield* running.signal("SIGINT")
      assert.strictEqual(yield* running.ended, 0)
      yield* running.until((lines) => lines.length >= 5)
      const { out } = running
      const requests = out.slice(1, 4).map((line) => parse(line))
      assert.deepStrictEqual(
        requests.map(({ event, seen, status }) => [event, seen, status]),
        [
          ["evt_1", 0, 429],
          ["evt_1", 1, 200],
          ["evt_2", 0, 429]
        ]
      )
      for (const { signature } of requests)
        assert.deepStrictEqual(signature, { result: "good", scheme: "standard" })
      assert.deepInclude(parse(nth(out, 4)), {
        ...{ event: "stopped", requests: 3, events: 2, repeats: 1, badSignatures: 0 },
        answers: { 200: 1, 429: 2 }
      })
    }).pipe(Effect.scoped)
  )

  it.live("closes connections, and holds answers back, where it is told", () =>
    Effect.gen(function* () {
      const dropping = yield* receiving("--drop", "--fail", "1")
      assert.strictEqual(yield* send(dropping.url, "evt_1"), "no answer")
      assert.deepInclude(yield* send(dropping.url, "evt_1"), { status: 200 })
      const slow = yield* receiving("--delay", "300ms")
      const begun = performance.now()
      yield* send(slow.url, "evt_1")
      assert.isAtLeast(performance.now() - begun, 290)
    }).pipe(Effect.scoped)
  )

  it.live("passes requests on as they are, and answers as they are answered", () =>
    Effect.gen(function* () {
      const behind = yield* receiver({ answer: { status: 202, body: "kept" } })
      const { url } = yield* receiving("--forward", `${behind.url}/in`)
      assert.deepInclude(yield* send(url, "evt_1", '{"ä":1}'), { status: 202, text: "kept" })
      const { body, headers, path } = nth(behind.requests, 0)
      assert.deepStrictEqual([String(body), path], ['{"ä":1}', "/in"])
      assert.strictEqual(headers["webhook-id"], "evt_1")
    }).pipe(Effect.scoped)
  )

  it.live("says in one sentence what makes no sense, and where it cannot listen", () =>
    Effect.gen(function* () {
      const said = (...args: ReadonlyArray<string>) =>
        Effect.map(run("receive", ...args), ({ code, err }) => `${code} ${err.join(" ")}`)
      assert.match(yield* said("--fail", "2", "--status", "200"), /^2 .*--status 200 is no failure/)
      assert.match(yield* said("--drop", "--status", "500"), /--drop closes the connection/)
      assert.match(yield* said("--retry-after", "3"), /--retry-after goes with answers that fail/)
      assert.match(yield* said("--secret", "x"), /--secret must be a secret/)
      assert.match(yield* said("--forward", "nowhere"), /must be a URL/)
      const taken = createServer()
      const port = yield* Effect.promise(
        () =>
          new Promise<number>((resolve) => {
            taken.listen(0, "127.0.0.1", () => {
              const address = taken.address()
              resolve(typeof address === "object" && address !== null ? address.port : 0)
            })
          })
      )
      assert.match(yield* said("--port", String(port)), /port \d+ is in use: choose another one/)
      taken.close()
    })
  )
})
