import { createPublicKey, verify as verifyWithKey } from "node:crypto"
import { assert, describe } from "@effect/vitest"
import { verify } from "@octokit/webhooks-methods"
import { Effect } from "effect"
import { Webhook } from "standardwebhooks"
import Stripe from "stripe"
import { curlOfAttempt, type Signing, sentHeaders, verifySnippets } from "../../ui/sent-headers.ts"
import { startConsole } from "../kit/console.ts"
import { history, nth, publish, worker } from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

/** Headers of HTTP and its connection, which are nobody's. */
const ofHttp = new Set(["host", "connection", "content-length", "transfer-encoding"])

const schemes = ["standard", "standard-ed25519", "stripe", "github", "none"] as const

/** What code for Node finds by its imports. */
const imported: Readonly<Record<Signing["sign"], object>> = {
  standard: { Webhook },
  "standard-ed25519": { createPublicKey, verify: verifyWithKey },
  stripe: { Stripe },
  github: { verify },
  none: {}
}

/** Runs code for a receiver in Node; rejects if it does not accept the request. */
const accepts = async (sign: Signing["sign"], code: string, given: object): Promise<void> => {
  const values = { ...imported[sign], ...given }
  const text = code.replaceAll(/^import .*$/gm, "")
  const make = new Function(...Object.keys(values), `return (async () => { ${text} })()`) as (
    ...all: ReadonlyArray<unknown>
  ) => Promise<void>
  await make(...Object.values(values))
}

describe("what a page says of a request", () => {
  scenario("is what its receiver gets, and the code that it shows verifies that", () =>
    Effect.gen(function* () {
      const hook = yield* receiver({})
      const facts = yield* history
      const console = yield* startConsole()
      const token = yield* console.token()
      const ask = (id: string, method: string, path = "", body?: unknown) =>
        console.ask(`/v1/tenants/acme/endpoints/${id}${path}`, {
          ...{ method, token },
          ...(body === undefined ? {} : { body })
        })
      for (const sign of schemes) {
        const made = yield* ask(sign, "PUT", "", {
          ...{ url: `${hook.url}/${sign}`, types: ["paid"], sign },
          ...{ headers: { "x-key": "of mine" }, forwardHeaders: { "x-correlation-id": true } },
          ...(sign === "stripe" ? { signatureHeader: "x-sign" } : {})
        })
        assert.strictEqual(made.status, 201, made.text)
      }
      const renamed = yield* ask("renamed", "PUT", "", {
        ...{ url: `${hook.url}/renamed`, types: ["paid"] },
        headerNames: { id: "x-id", type: "x-type", timestamp: "x-at" }
      })
      assert.strictEqual(renamed.status, 201, renamed.text)
      yield* worker()
      yield* publish("paid", '{"invoice":42}', {
        "Nats-Msg-Id": "acme.one",
        "x-correlation-id": "c-1"
      })
      yield* facts.count("delivered", schemes.length + 1)
      for (const id of [...schemes, "renamed"]) {
        const got = nth(
          hook.requests.filter(({ path }) => path === `/${id}`),
          0
        )
        const fact = facts.of("delivered").find(({ endpoint }) => endpoint === id)
        const shown = yield* ask(id, "GET")
        const of = shown.json as unknown as Signing
        const { durationMs = 0 } = fact ?? {}
        const headers = sentHeaders(of, {
          ...{ event: "acme.one", type: "paid", number: 1 },
          beganAt: (fact?.at ?? 0) - durationMs
        })
        const names = Object.keys(got.headers).filter((name) => !ofHttp.has(name))
        assert.sameMembers(
          headers.map(({ name }) => name),
          names,
          id
        )
        for (const { name, value } of headers) {
          // The attempt is signed a moment before its request begins.
          const isTime = name === (of.headerNames?.timestamp ?? "webhook-timestamp")
          if (isTime) assert.approximately(Number(value), Number(got.headers[name]), 1, id)
          else if (value !== undefined) assert.strictEqual(value, got.headers[name], name)
        }
        const copied = curlOfAttempt(`${hook.url}/${id}`, headers, { text: "it's" })
        assert.notInclude(copied, "of mine")
        assert.include(copied, `--data-binary 'it'\\''s'`)
        const secrets = (yield* ask(id, "GET", "/secret")).json.secrets
        const [newest] = secrets as ReadonlyArray<{ readonly value: string }>
        const code = verifySnippets(of).find(({ language }) => language === "Node")?.code
        if (of.sign === "none") {
          assert.isUndefined(code)
          continue
        }
        const given = {
          ...{ headers: got.headers, secret: newest?.value, publicKey: of.publicKey },
          rawBody: got.body
        }
        yield* Effect.promise(() => accepts(of.sign, code ?? "", given))
        const other = { ...given, rawBody: Buffer.from('{"invoice":43}') }
        const refused = yield* Effect.promise(() =>
          accepts(of.sign, code ?? "", other).then(
            () => false,
            () => true
          )
        )
        assert.isTrue(refused, `${id} takes other bytes`)
      }
    })
  )
})
