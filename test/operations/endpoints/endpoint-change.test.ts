import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Result } from "effect"
import type { Endpoint } from "../../../src/domain/endpoint.ts"
import {
  blankEndpoint,
  changedEndpoint
} from "../../../src/operations/endpoints/endpoint-change.ts"
import type { EndpointPatch } from "../../../src/operations/endpoints/endpoint-settings.ts"
import { resolveRetry } from "../../../src/policy/presets.ts"

const now = 1_800_000_000_000
const standardSecret = `whsec_${Buffer.alloc(32, 1).toString("base64")}`

const before: Endpoint = {
  ...blankEndpoint({ tenant: "acme", id: "hook" }, "0123456789abcdef", now - 1_000),
  url: "https://example.com/",
  secrets: [{ value: standardSecret, createdAt: now - 1_000 }],
  timeout: Duration.seconds(20),
  headers: { "X-Env": "prod", "x-team": "billing" }
}

const minuteMs = 60_000
const change = (patch: EndpointPatch, endpoint = before) =>
  changedEndpoint(endpoint, patch, now, { scopes: [], maxTimeoutMs: 5 * minuteMs })

const problems = (...args: Parameters<typeof change>) =>
  Effect.map(Effect.flip(change(...args)), (invalid) => invalid.problems)

describe("a change of an endpoint", () => {
  it.effect("names whom to tell and when, and goes back to nobody and to what is usual", () =>
    Effect.gen(function* () {
      const alerts = { samples: 5 }
      const { endpoint } = yield* change({ contact: "ana", alerts })
      assert.deepInclude(endpoint, { contact: "ana", alerts })
      const kept = yield* change({ redirects: 1 }, endpoint)
      assert.deepInclude(kept.endpoint, { contact: "ana", alerts })
      const back = yield* change({ alerts: {}, contact: null }, endpoint)
      assert.notProperty(back.endpoint, "contact")
      assert.notProperty(back.endpoint, "alerts")
      const silent = yield* change({ alerts: "off" }, endpoint)
      assert.strictEqual(silent.endpoint.alerts, "off")
    })
  )

  it.effect("writes bodies for a chat tool only where it gets nothing but alerts", () =>
    Effect.gen(function* () {
      const problem = [
        {
          field: "format",
          message:
            "slack is for an endpoint that gets nothing but alerts: give it `operational` alone, or `types` that begin with petrel.alert"
        }
      ]
      assert.deepStrictEqual(yield* problems({ format: "slack" }), problem)
      const { endpoint } = yield* change({ format: "slack", types: ["petrel.alert.>"] })
      assert.deepInclude(endpoint, { format: "slack", sign: "standard" })
      assert.deepStrictEqual(yield* problems({ types: ["invoice.>"] }, endpoint), problem)
      const back = yield* change({ format: null, types: ["invoice.>"] }, endpoint)
      assert.notProperty(back.endpoint, "format")
    })
  )

  it.effect("signs nothing for a chat tool, unless it is asked to", () =>
    Effect.gen(function* () {
      const blank = blankEndpoint({ tenant: "acme", id: "ops" }, "0123456789abcdef", now)
      const slack: EndpointPatch = {
        ...{ url: "https://chat.example/T/B", operational: true, format: "slack" }
      }
      const { endpoint } = yield* change(slack, blank)
      assert.deepInclude(endpoint, { sign: "none", secrets: [] })
      const signed = yield* change({ ...slack, sign: "standard" }, blank)
      assert.lengthOf(signed.endpoint.secrets, 1)
    })
  )

  it.effect("names headers to forward, but none that the endpoint sets itself", () =>
    Effect.gen(function* () {
      const { endpoint } = yield* change({ forwardHeaders: { "X-Request-Id": true, "x-b": true } })
      assert.deepStrictEqual(endpoint.forwardHeaders, ["x-request-id", "x-b"])
      const less = yield* change({ forwardHeaders: { "X-B": null } }, endpoint)
      assert.deepStrictEqual(less.endpoint.forwardHeaders, ["x-request-id"])
      const none = yield* change({ forwardHeaders: { "x-request-id": null } }, less.endpoint)
      assert.notProperty(none.endpoint, "forwardHeaders")
      const field = "forwardHeaders"
      const taken = (name: string, what: string) => [
        { field, message: `"${name}" is also the name of ${what}: choose another one` }
      ]
      assert.deepStrictEqual(
        yield* problems({ forwardHeaders: { "X-Env": true } }),
        taken("x-env", "one of its own headers")
      )
      assert.deepStrictEqual(
        yield* problems({ headers: { "X-B": "1" } }, endpoint),
        taken("x-b", "one of its own headers")
      )
      assert.deepStrictEqual(
        yield* problems({ headerNames: { id: "x-b" } }, endpoint),
        taken("x-b", "the header of the id")
      )
    })
  )

  it.effect(
    "makes an endpoint operational: of alerts only, where it is new and no types are named",
    () =>
      Effect.gen(function* () {
        const blank = blankEndpoint({ tenant: "acme", id: "ops" }, "g", now)
        const url = "https://example.com/ops"
        const typesOf = (patch: EndpointPatch, endpoint = before) =>
          Effect.map(change({ ...patch, operational: true }, endpoint), (it) => it.endpoint.types)
        assert.deepStrictEqual(yield* typesOf({ url }, blank), ["petrel.alert.>"])
        assert.deepStrictEqual(yield* typesOf({ url, types: ["a"] }, blank), [
          "a",
          "petrel.alert.>"
        ])
        const types = yield* typesOf({})
        assert.deepStrictEqual(types, [">", "petrel.alert.>"])
        assert.deepStrictEqual(yield* typesOf({}, { ...before, types }), types)
      })
  )

  it.effect("says what to do instead of more event types than an endpoint may have", () =>
    Effect.gen(function* () {
      const most = [">", ...Array.from({ length: 199 }, (_, n) => `invoice.${n}`)] as const
      const { endpoint } = yield* change({ types: [...most] })
      assert.lengthOf(endpoint.types, 200)
      const tooMany = [
        {
          field: "types",
          message:
            "would be 201, and an endpoint takes at most 200 event types: use wildcards such as invoice.>, or a second endpoint"
        }
      ]
      assert.deepStrictEqual(yield* problems({ types: [...most, "b"] }), tooMany)
      assert.deepStrictEqual(yield* problems({ operational: true }, endpoint), tooMany)
    })
  )

  it.effect("leaves alone what is not named", () =>
    Effect.gen(function* () {
      const { endpoint, made } = yield* change({ url: "https://example.com/new" })
      assert.deepStrictEqual(endpoint, {
        ...before,
        url: "https://example.com/new",
        updatedAt: now
      })
      assert.isUndefined(made)
    })
  )

  it.effect("replaces and removes headers whatever their case", () =>
    Effect.gen(function* () {
      const { endpoint } = yield* change({ headers: { "x-env": "test", "X-TEAM": null } })
      assert.deepStrictEqual(endpoint.headers, { "x-env": "test" })
    })
  )

  it.effect("goes back to the policy's time-outs", () =>
    Effect.gen(function* () {
      const connectTimeout = Duration.seconds(3)
      const { endpoint: limited } = yield* change({ connectTimeout })
      assert.deepStrictEqual(limited.connectTimeout, connectTimeout)
      const { endpoint } = yield* change({ timeout: null, connectTimeout: null }, limited)
      assert.notProperty(endpoint, "timeout")
      assert.notProperty(endpoint, "connectTimeout")
    })
  )

  it.effect("gives no time-out that is longer than an operator allows, in a policy neither", () =>
    Effect.gen(function* () {
      const most = Duration.minutes(5)
      const long = Duration.millis(5 * minuteMs + 1)
      const policy = Result.getOrThrow(resolveRetry("stripe"))
      yield* change({ timeout: most, connectTimeout: most, retry: { ...policy, timeout: most } })
      const found = yield* problems({
        timeout: long,
        connectTimeout: Duration.days(366),
        retry: { ...policy, timeout: long },
        retryFor: { "invoice.>": { ...policy, connectTimeout: long }, "user.>": "stripe" }
      })
      const message =
        "must be at most 5 min: an operator can allow more (`petrel tenant set --max-timeout`)"
      assert.deepStrictEqual(
        found,
        ["timeout", "connectTimeout", "retry.timeout", "retryFor.invoice.>.connectTimeout"].map(
          (field) => ({ field, message })
        )
      )
      // What is stored with more may stay: it is cut where it is used.
      yield* change({ redirects: 1 }, { ...before, timeout: Duration.days(366) })
    })
  )

  it.effect("sets a rate and a circuit, keeps them, and goes back to none", () =>
    Effect.gen(function* () {
      const rate = { perSecond: 20, burst: 1 }
      const { endpoint } = yield* change({ rate, circuit: { failures: 3 } })
      assert.deepStrictEqual(endpoint, {
        ...before,
        rate,
        circuit: { failures: 3 },
        updatedAt: now
      })
      const same = yield* change({ redirects: before.redirects }, endpoint)
      assert.deepStrictEqual(same.endpoint, endpoint)
      const replaced = yield* change({ circuit: { successes: 1 } }, endpoint)
      assert.deepStrictEqual(replaced.endpoint.circuit, { successes: 1 })
      const back = yield* change({ circuit: {}, rate: null }, endpoint)
      assert.deepStrictEqual(back.endpoint, { ...before, updatedAt: now })
    })
  )

  it.effect("sets retry policies for event types one by one, and removes them", () =>
    Effect.gen(function* () {
      const { endpoint } = yield* change({ retryFor: { "invoice.>": "stripe", "a.*": "slack" } })
      assert.deepStrictEqual(endpoint.retryFor, { "invoice.>": "stripe", "a.*": "slack" })
      const other = yield* change({ retryFor: { "a.*": "github", b: "slack" } }, endpoint)
      assert.deepStrictEqual(other.endpoint.retryFor, {
        ...{ "invoice.>": "stripe", "a.*": "github", b: "slack" }
      })
      const fewer = yield* change({ retryFor: { "a.*": null, b: null } }, other.endpoint)
      assert.deepStrictEqual(fewer.endpoint.retryFor, { "invoice.>": "stripe" })
      const none = yield* change({ retryFor: { "invoice.>": null } }, fewer.endpoint)
      assert.deepStrictEqual(none.endpoint, { ...before, updatedAt: now })
    })
  )

  it.effect("sets entries of metadata one by one, 20 at most, and removes them", () =>
    Effect.gen(function* () {
      const { endpoint } = yield* change({ metadata: { plan: "gold", toString: "x" } })
      assert.deepStrictEqual(endpoint.metadata, { plan: "gold", toString: "x" })
      const other = yield* change({ metadata: { plan: "free", toString: null } }, endpoint)
      assert.deepStrictEqual(other.endpoint.metadata, { plan: "free" })
      assert.deepStrictEqual(yield* problems({ metadata: { constructor: null } }, endpoint), [
        { field: "metadata.constructor", message: "names an entry that is not there" }
      ])
      const many = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`k${n}`, "v"]))
      assert.deepStrictEqual(yield* problems({ metadata: many }, endpoint), [
        {
          field: "metadata",
          message: "would be 22, and an endpoint has at most 20 entries of metadata"
        }
      ])
      const none = yield* change({ metadata: { plan: null } }, other.endpoint)
      assert.deepStrictEqual(none.endpoint, { ...before, updatedAt: now })
    })
  )

  it.effect("is refused where it adds headers beyond 20, in whatever case they are written", () =>
    Effect.gen(function* () {
      const named = (count: number) =>
        Object.fromEntries(Array.from({ length: count }, (_, n) => [`x-${n}`, "v"]))
      const { endpoint } = yield* change({ headers: named(18) })
      assert.lengthOf(Object.keys(endpoint.headers), 20)
      const same = yield* change({ headers: { "X-0": "w", "x-1": null, "x-18": "v" } }, endpoint)
      assert.lengthOf(Object.keys(same.endpoint.headers), 20)
      assert.deepStrictEqual(yield* problems({ headers: named(19) }, endpoint), [
        {
          field: "headers",
          message: "would be 21, and an endpoint has at most 20 headers of its own"
        }
      ])
    })
  )

  it.effect("is refused for event types of which two policies win equally, or of none", () =>
    Effect.gen(function* () {
      const { endpoint } = yield* change({ retryFor: { "invoice.>": "stripe" } })
      assert.deepStrictEqual(
        yield* problems({ retryFor: { "invoice.*": "slack", "order.>": null } }, endpoint),
        [
          {
            field: "retryFor.order.>",
            message: "names event types that have no retry policy of their own"
          },
          {
            field: "retryFor",
            message:
              '"invoice.>" and "invoice.*" win equally for an event type such as invoice.x: leave one out, or name more tokens in it'
          }
        ]
      )
      yield* change({ retryFor: { "invoice.*": "slack", "invoice.>": null } }, endpoint)
      const many = Array.from({ length: 21 }, (_, n) => [`a${n}`, "slack"])
      assert.deepStrictEqual(yield* problems({ retryFor: Object.fromEntries(many) }), [
        {
          field: "retryFor",
          message:
            "would be 21, and an endpoint takes at most 20 retry policies for event types: use wildcards such as invoice.>, or a second endpoint"
        }
      ])
    })
  )

  it.effect("names headers one by one, and goes back to the usual names", () =>
    Effect.gen(function* () {
      const { endpoint } = yield* change({ headerNames: { id: "X-Id", type: "x-topic" } })
      assert.deepStrictEqual(endpoint.headerNames, { id: "X-Id", type: "x-topic" })
      const other = yield* change({ headerNames: { timestamp: "x-at", id: null } }, endpoint)
      assert.deepStrictEqual(other.endpoint.headerNames, { type: "x-topic", timestamp: "x-at" })
      const usual = { type: "Webhook-Event-Type", timestamp: "webhook-timestamp" }
      const back = yield* change({ headerNames: usual }, other.endpoint)
      assert.deepStrictEqual(back.endpoint, { ...before, updatedAt: now })
      const swapped = { id: "webhook-event-type", type: "webhook-id" }
      assert.deepStrictEqual(
        (yield* change({ headerNames: swapped })).endpoint.headerNames,
        swapped
      )
    })
  )

  it.effect.each<[patch: EndpointPatch, field: string, message: string]>([
    [
      { headerNames: { type: "Webhook-Id" } },
      "headerNames.type",
      '"Webhook-Id" is also the name of the header of the id: choose another one'
    ],
    [
      { headerNames: { id: "webhook-timestamp" } },
      "headerNames.id",
      '"webhook-timestamp" is also the name of the header of the timestamp: choose another one'
    ],
    [
      { headerNames: { id: "x-one", timestamp: "X-One" } },
      "headerNames.timestamp",
      '"X-One" is also the name of the header of the id: choose another one'
    ],
    [
      { headerNames: { id: "x-env" } },
      "headerNames.id",
      '"x-env" is also the name of one of its own headers: choose another one'
    ],
    [
      { headerNames: { id: "webhook-signature" } },
      "headerNames.id",
      '"webhook-signature" is also the name of the signature header: choose another one'
    ],
    [
      { sign: "stripe", signatureHeader: "x-sig", headerNames: { type: "x-sig" } },
      "signatureHeader",
      '"x-sig" is also the name of the header of the type: choose another one'
    ],
    [
      { sign: "stripe", signatureHeader: "x-team" },
      "signatureHeader",
      '"x-team" is also the name of one of its own headers: choose another one'
    ],
    [
      { sign: "github", headerNames: { type: "x-github-event" } },
      "headerNames.type",
      '"x-github-event" is also the name of a header of GitHub style: choose another one'
    ]
  ])("is refused for two headers of one name: %j", ([patch, field, message]) =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* problems(patch), [{ field, message }])
    })
  )

  it.effect("leaves an endpoint paused that is paused", () =>
    Effect.gen(function* () {
      const paused = { at: 1, by: "cli" }
      const { endpoint } = yield* change({ redirects: 1 }, { ...before, paused })
      assert.deepStrictEqual(endpoint.paused, paused)
    })
  )

  it.effect("makes a secret where there is none", () =>
    Effect.gen(function* () {
      const { endpoint, made } = yield* change({}, { ...before, secrets: [] })
      assert.match(made ?? "", /^whsec_/)
      assert.deepStrictEqual(endpoint.secrets, [{ value: made ?? "", createdAt: now }])
    })
  )

  it.effect("keeps secrets that the new scheme can use, and makes one where it cannot", () =>
    Effect.gen(function* () {
      const stripe = yield* change({ sign: "stripe" })
      assert.deepStrictEqual(stripe.endpoint.secrets, before.secrets)
      assert.isUndefined(stripe.made)
      const ed25519 = yield* change({ sign: "standard-ed25519" })
      assert.match(ed25519.made ?? "", /^whsk_/)
      assert.deepStrictEqual(
        ed25519.endpoint.secrets.map(({ value }) => value),
        [ed25519.made ?? ""]
      )
    })
  )

  it.effect(
    "drops all secrets with the signature, and the signature header with Stripe's style",
    () =>
      Effect.gen(function* () {
        const stripe = yield* change({ sign: "stripe", signatureHeader: "x-sig" })
        assert.strictEqual(stripe.endpoint.signatureHeader, "x-sig")
        const none = yield* change({ sign: "none" }, stripe.endpoint)
        assert.deepStrictEqual(none.endpoint.secrets, [])
        assert.notProperty(none.endpoint, "signatureHeader")
      })
  )

  it.effect("takes a given secret in place of all others, and does not show it", () =>
    Effect.gen(function* () {
      const secret = `whsec_${Buffer.alloc(32, 2).toString("base64")}`
      const { endpoint, made } = yield* change({ secret })
      assert.deepStrictEqual(endpoint.secrets, [{ value: secret, createdAt: now }])
      assert.isUndefined(made)
    })
  )

  it.effect("is refused for everything that does not go together", () =>
    Effect.gen(function* () {
      const found = yield* problems({
        secret: "short",
        signatureHeader: "x-sig",
        headers: { "x-none": null }
      })
      assert.deepStrictEqual(found, [
        {
          field: "secret",
          message:
            "does not fit: a secret for standard signatures must be whsec_ followed by base64"
        },
        { field: "signatureHeader", message: "goes with `sign` stripe only, and this is standard" },
        { field: "headers.x-none", message: "names a header that is not set" }
      ])
    })
  )

  it.effect("is refused for a new endpoint without a URL", () =>
    Effect.gen(function* () {
      const blank = blankEndpoint({ tenant: "acme", id: "new" }, "0123456789abcdef", now)
      assert.deepStrictEqual(yield* problems({}, blank), [{ field: "url", message: "is missing" }])
    })
  )
})
