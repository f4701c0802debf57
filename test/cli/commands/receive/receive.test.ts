import { createHmac, generateKeyPairSync, sign } from "node:crypto"
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

  it.live("verifies and reads webhooks of a provider, and answers its handshake", () =>
    Effect.gen(function* () {
      const flags = ["--provider", "slack", "--secret", "old", "--secret", "new"]
      const { running, url } = yield* receiving(...flags)
      const ask = (value: object, key: string, ago = 0) => {
        const body = JSON.stringify(value)
        const time = String(Math.floor(Date.now() / 1_000) - ago)
        const made = createHmac("sha256", key).update(`v0:${time}:${body}`).digest("hex")
        const headers = { "x-slack-request-timestamp": time, "x-slack-signature": `v0=${made}` }
        return Effect.promise(() =>
          fetch(url, { method: "POST", headers, body }).then((answer) => answer.text())
        )
      }
      const event = { type: "event_callback", event_id: "Ev1", event: { type: "app_mention" } }
      const challenge = { type: "url_verification", challenge: "abc" }
      assert.strictEqual(yield* ask(challenge, "new"), "abc")
      assert.strictEqual(yield* ask(challenge, "other"), "")
      yield* ask(event, "old")
      yield* ask(event, "new", 400)
      yield* ask({ event_id: "Ev2" }, "new")
      yield* running.until((lines) => lines.length >= 6)
      const said = running.out.slice(1).map((line) => parse(line))
      assert.deepStrictEqual(
        said.map(({ event, seen, signature, type }) => [
          ...[type, event, seen],
          (signature as { result: string }).result
        ]),
        [
          ["handshake", undefined, 0, "good"],
          ["url_verification", undefined, 0, "bad"],
          ["app_mention", "Ev1", 0, "good"],
          ["app_mention", "Ev1", 1, "bad"],
          [undefined, undefined, 0, "good"]
        ]
      )
      assert.deepStrictEqual(
        nth(said, 4).unreadable,
        "The request has no type: Slack has it in `event.type`."
      )
      yield* running.signal("SIGINT")
      yield* running.until((lines) => lines.length >= 7)
      assert.deepInclude(parse(nth(running.out, 6)), { requests: 5, badSignatures: 2, repeats: 1 })
    }).pipe(Effect.scoped)
  )

  it.live("shows how many events a batch has", () =>
    Effect.gen(function* () {
      const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" })
      const key = publicKey.export({ format: "der", type: "spki" }).toString("base64")
      const running = yield* start(
        ...["receive", "--port", "0", "--provider", "sendgrid", "--secret", key]
      )
      yield* running.until((_, err) => err.some((line) => /Receives on/.test(line)))
      const [, url = ""] = /Receives on (\S+)/.exec(running.err.join(" ")) ?? []
      const body = JSON.stringify([{ event: "open", sg_event_id: "a" }, { event: "click" }])
      const time = String(Math.floor(Date.now() / 1_000))
      const made = sign("sha256", Buffer.from(time + body), privateKey).toString("base64")
      const headers = {
        "x-twilio-email-event-webhook-timestamp": time,
        "x-twilio-email-event-webhook-signature": made
      }
      yield* Effect.promise(() => fetch(url, { method: "POST", headers, body }))
      yield* running.until((lines) => lines.length > 0)
      assert.match(
        nth(running.out, 0),
        /200 {2}POST \/ {2}open {2}a {2}2 events .*good \(sendgrid\)/
      )
    }).pipe(Effect.scoped)
  )

  it.live("says in one sentence what makes no sense, and where it cannot listen", () =>
    Effect.gen(function* () {
      const said = (...args: ReadonlyArray<string>) =>
        Effect.map(run("receive", ...args), ({ code, err }) => `${code} ${err.join(" ")}`)
      assert.match(
        yield* said("--fail", "2", "--status", "200"),
        /^2 .*--status 200 is not a failure/
      )
      assert.match(yield* said("--drop", "--status", "500"), /--drop closes the connection/)
      assert.match(yield* said("--retry-after", "3"), /--retry-after goes with answers that fail/)
      assert.match(yield* said("--secret", "x"), /--secret must be a secret/)
      assert.match(yield* said("--forward", "nowhere"), /must be a URL/)
      assert.match(yield* said("--provider", "nobody"), /must be one of petrel, .* hmac/)
      assert.match(yield* said("--public-url", "https://a.example"), /goes with --provider/)
      const square = yield* said("--provider", "square", "--scheme", "{}")
      assert.match(
        square,
        /^2 .*--secret is missing: .*--public-url is missing: .*--scheme is not used by/
      )
      const stripe = yield* said("--provider", "stripe", "--secret", "sk_live_1")
      assert.match(stripe, /^2 .*--secret must have the signing secret/)
      const hmac = ["--provider", "hmac", "--secret", "x", "--scheme"]
      assert.match(yield* said(...hmac, "{"), /--scheme .* must be an object such as/)
      assert.match(yield* said(...hmac, "{}"), /--scheme must have the name of a header/)
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
