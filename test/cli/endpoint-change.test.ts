import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import type { Removals } from "../../src/cli/endpoint-change.ts"
import {
  blankEndpoint,
  cautions,
  changedEndpoint,
  nothingRemoved,
  rotatedSecrets
} from "../../src/cli/endpoint-change.ts"
import type { EndpointFields } from "../../src/cli/endpoint-fields.ts"
import type { Endpoint } from "../../src/domain/endpoint.ts"

const nothing: EndpointFields = {
  url: undefined,
  types: undefined,
  secret: undefined,
  sign: undefined,
  signatureHeader: undefined,
  retry: undefined,
  circuit: undefined,
  maxInFlight: undefined,
  adapt: undefined,
  rate: undefined,
  timeout: undefined,
  redirects: undefined,
  headers: {}
}

const now = 1_800_000_000_000
const standardSecret = `whsec_${Buffer.alloc(32, 1).toString("base64")}`

const before: Endpoint = {
  ...blankEndpoint({ tenant: "acme", id: "hook" }, "0123456789abcdef", now - 1_000),
  url: "https://example.com/",
  secrets: [{ value: standardSecret, createdAt: now - 1_000 }],
  timeout: Duration.seconds(20),
  headers: { "X-Env": "prod", "x-team": "billing" }
}

const change = (
  fields: Partial<EndpointFields>,
  removals: Partial<Removals> = {},
  endpoint = before
) => changedEndpoint(endpoint, { ...nothing, ...fields }, { ...nothingRemoved, ...removals }, now)

const refused = (...args: Parameters<typeof change>) =>
  Effect.map(Effect.flip(change(...args)), ({ message }) => message)

describe("a change of an endpoint", () => {
  it.effect("names whom to tell and when, and goes back to nobody and to what is usual", () =>
    Effect.gen(function* () {
      const alerts = { samples: 5 }
      const { endpoint } = yield* change({ contact: "ana", alerts })
      assert.deepInclude(endpoint, { contact: "ana", alerts })
      const kept = yield* change({ redirects: 1 }, {}, endpoint)
      assert.deepInclude(kept.endpoint, { contact: "ana", alerts })
      const back = yield* change({ alerts: {} }, { contact: true }, endpoint)
      assert.notProperty(back.endpoint, "contact")
      assert.notProperty(back.endpoint, "alerts")
      const silent = yield* change({ alerts: "off" }, {}, endpoint)
      assert.strictEqual(silent.endpoint.alerts, "off")
      assert.match(yield* refused({ contact: "b" }, { contact: true }), /exclude each other/)
    })
  )

  it.effect(
    "makes an endpoint operational: of alerts only, where it is new and no types are named",
    () =>
      Effect.gen(function* () {
        const blank = blankEndpoint({ tenant: "acme", id: "ops" }, "g", now)
        const url = "https://example.com/ops"
        const typesOf = (fields: Partial<EndpointFields>, endpoint = before) =>
          Effect.map(
            change({ ...fields, operational: true }, {}, endpoint),
            (it) => it.endpoint.types
          )
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
      const says =
        "an endpoint takes at most 200 event types, and these would be 201: use wildcards such as invoice.>, or a second endpoint"
      assert.strictEqual(yield* refused({ types: [...most, "b"] }), says)
      assert.strictEqual(yield* refused({ operational: true }, {}, endpoint), says)
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
      const { endpoint } = yield* change({ headers: { "x-env": "test" } }, { headers: ["X-TEAM"] })
      assert.deepStrictEqual(endpoint.headers, { "x-env": "test" })
    })
  )

  it.effect("goes back to the policy's time-out", () =>
    Effect.gen(function* () {
      const { endpoint } = yield* change({}, { timeout: true })
      assert.notProperty(endpoint, "timeout")
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
      const same = yield* change({ redirects: before.redirects }, {}, endpoint)
      assert.deepStrictEqual(same.endpoint, endpoint)
      const replaced = yield* change({ circuit: { successes: 1 } }, {}, endpoint)
      assert.deepStrictEqual(replaced.endpoint.circuit, { successes: 1 })
      const back = yield* change({ circuit: {} }, { rate: true }, endpoint)
      assert.deepStrictEqual(back.endpoint, { ...before, updatedAt: now })
    })
  )

  it.effect("leaves an endpoint paused that is paused", () =>
    Effect.gen(function* () {
      const paused = { at: 1, by: "cli" }
      const { endpoint } = yield* change({ redirects: 1 }, {}, { ...before, paused })
      assert.deepStrictEqual(endpoint.paused, paused)
    })
  )

  it.effect("does not set a rate and take it back at once", () =>
    Effect.gen(function* () {
      const message = yield* refused({ rate: { perSecond: 1, burst: 1 } }, { rate: true })
      assert.strictEqual(message, "--rate and --no-rate exclude each other")
    })
  )

  it.effect("makes a secret where there is none", () =>
    Effect.gen(function* () {
      const { endpoint, made } = yield* change({}, {}, { ...before, secrets: [] })
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
        const none = yield* change({ sign: "none" }, {}, stripe.endpoint)
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
      const said = yield* refused(
        { secret: "short", signatureHeader: "x-sig", timeout: Duration.seconds(5) },
        { timeout: true, headers: ["x-none"] }
      )
      assert.strictEqual(
        said,
        'the secret does not fit: a secret for standard signatures must be whsec_ followed by base64; --signature-header goes with --sign stripe only, and this is standard; --timeout and --no-timeout exclude each other; --no-header "x-none" names a header that is not set'
      )
      assert.notInclude(said, "short")
    })
  )

  it.effect("is refused for a new endpoint without a URL", () =>
    Effect.gen(function* () {
      const blank = blankEndpoint({ tenant: "acme", id: "new" }, "0123456789abcdef", now)
      assert.strictEqual(yield* refused({}, {}, blank), "--url is missing")
    })
  )
})

describe("a rotation", () => {
  const day = 86_400_000
  const old = { value: "old", createdAt: 1 }

  it("puts the new secret first and lets the old one sign for a while", () => {
    assert.deepStrictEqual(rotatedSecrets([old], "new", day, now), [
      { value: "new", createdAt: now },
      { value: "old", createdAt: 1, until: now + day }
    ])
  })

  it("never gives an older secret more time than it had, and drops those past theirs", () => {
    const older = { value: "older", createdAt: 0, until: now + 5 }
    const past = { value: "past", createdAt: 0, until: now }
    assert.deepStrictEqual(rotatedSecrets([old, older, past], "new", day, now).slice(1), [
      { ...old, until: now + day },
      older
    ])
  })

  it("drops all old secrets at once where none is to be kept", () => {
    const older = { value: "older", createdAt: 0, until: now + day }
    assert.deepStrictEqual(rotatedSecrets([old, older], "new", 0, now), [
      { value: "new", createdAt: now }
    ])
  })
})

describe("cautions", () => {
  const of = (changes: Partial<Endpoint>) => {
    const { timeout: _, ...rest } = before
    return cautions({ ...rest, ...changes })
  }

  it("say nothing of what is usual", () => {
    assert.deepStrictEqual(of({}), [])
  })

  it.each(["http://localhost:3000/", "http://127.0.0.1/", "http://10.1.2.3/", "http://[::1]/"])(
    "say that %s is reached only with --allow-network",
    (url) => {
      const [said = "", ...others] = of({ url, headers: {} })
      assert.match(said, /is not a public address: .*--allow-network /)
      assert.deepStrictEqual(others, [])
    }
  )

  it.each(["http://169.254.169.254/", "http://[fd00:ec2::254]/", "http://[fe80::1]/"])(
    "say that %s is refused, and not how to allow it",
    (url) => {
      const [said = "", ...others] = of({ url, headers: {} })
      assert.match(said, /is not a public address: requests to it are refused$/)
      assert.deepStrictEqual(others, [])
    }
  )

  it("name what http shows to whoever is on the way", () => {
    const headers = { authorization: "Bearer x" }
    assert.deepStrictEqual(of({ url: "http://hooks.example.com/?token=t", headers }), [
      "the URL is http: whoever is on the way can read the URL's query and the header authorization; use https where that is a credential"
    ])
    assert.deepStrictEqual(of({ url: "http://hooks.example.com/", headers: {} }), [])
    assert.deepStrictEqual(of({ url: "https://hooks.example.com/?token=t", headers }), [])
  })

  it("name a port that workers do not send to by themselves", () => {
    const [said = "", ...others] = of({ url: "https://hooks.example.com:8443/" })
    assert.match(said, /^port 8443 is neither 443 nor 80: .*--allow-port 8443/)
    assert.deepStrictEqual(others, [])
    assert.deepStrictEqual(of({ url: "https://hooks.example.com:80/" }), [])
  })

  it("warn of a time-out below 10 s, the endpoint's own or its policy's", () => {
    assert.match(of({ timeout: Duration.seconds(9) })[0] ?? "", /^the time-out of 9 s is short/)
    assert.match(of({ retry: "shopify" })[0] ?? "", /^the retry policy's time-out of 5 s is short/)
    assert.deepStrictEqual(of({ timeout: Duration.seconds(10) }), [])
    assert.deepStrictEqual(of({ retry: "shopify", timeout: Duration.seconds(10) }), [])
  })
})
