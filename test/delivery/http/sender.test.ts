import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import type { AttemptRequest } from "../../../src/delivery/http/attempt.ts"
import type { HttpTransport } from "../../../src/delivery/http/egress.ts"
import { formatted, startSending } from "../../../src/delivery/http/sender.ts"
import { Endpoint, type EndpointJson } from "../../../src/domain/endpoint.ts"
import type { AttemptOutcome } from "../../../src/domain/outcome.ts"
import { attemptSpanId } from "../../../src/domain/trace-context.ts"
import { type LiveEndpoint, makeLive } from "../../../src/endpoints/live-endpoint.ts"
import { clock, timers } from "../../../src/time/timers.ts"
import { quickRetry } from "../../kit/engine.ts"
import { clockEvents, withVirtualTime } from "../../kit/moved-time.ts"
import { deliveryOf, live } from "../made-deliveries.ts"

describe("an attempt", () => {
  for (const [what, happens] of clockEvents)
    it(`ended when it began plus its duration, where ${what} meanwhile`, () =>
      withVirtualTime((time) => {
        let answer: (result: AttemptOutcome["result"]) => void = () =>
          assert.fail("it was not started")
        const transport = {
          start: (_: unknown, done: typeof answer) => {
            answer = done
            return { cancel: () => undefined }
          }
        } as unknown as HttpTransport
        const outcomes: Array<AttemptOutcome> = []
        const began = timers.wallMs()
        startSending(
          { transport, clock, answers: () => "none", traces: false },
          { body: new Uint8Array(2), delivery: deliveryOf() },
          live,
          1,
          (outcome) => outcomes.push(outcome)
        )
        time.runs(250)
        happens(time)
        answer({ status: 503, durationMs: 250.4 })
        assert.deepStrictEqual(
          outcomes.map(({ at }) => at - began),
          [250]
        )
      }))
})

describe("an answer", () => {
  it("keeps what it says of content types, where the request is not signed", () => {
    const kept: Array<unknown> = []
    const response = { headers: { "content-type": "application/json" }, body: "{}", bytes: 2 }
    const transport = {
      start: (_: unknown, done: (result: AttemptOutcome["result"]) => void) =>
        done({ status: 400, durationMs: 1, response })
    } as unknown as HttpTransport
    const unsigned = makeLive(live.key, { ...live.config, sign: "none", secrets: [] }, 2)
    startSending(
      { transport, clock, answers: () => "body", traces: false },
      { body: new Uint8Array(2), delivery: deliveryOf() },
      unsigned,
      1,
      ({ result }) => kept.push(result.response)
    )
    assert.deepStrictEqual(kept, [response])
  })
})

describe("a request", () => {
  const encoded = Schema.encodeSync(Endpoint)(live.config)
  const endpointOf = (changes: Partial<EndpointJson>) =>
    makeLive(live.key, Schema.decodeUnknownSync(Endpoint)({ ...encoded, ...changes }), 2)

  /** Sends one event of a type. Returns the request, and the verdict on a status. */
  const send = (
    endpoint: LiveEndpoint,
    type: string,
    { content = {}, number = 1, status = 500, traces = false } = {}
  ) => {
    const requests: Array<AttemptRequest> = []
    const verdicts: Array<string> = []
    const transport: HttpTransport = {
      start: (request, done) => {
        requests.push(request)
        done({ status, durationMs: 1 })
        return { interrupt: () => undefined, end: () => undefined }
      }
    }
    startSending(
      { transport, clock, answers: () => "none", traces },
      { body: new Uint8Array(2), delivery: deliveryOf({ type, content }) },
      endpoint,
      number,
      ({ verdict }) => verdicts.push(verdict)
    )
    assert.lengthOf(requests, 1)
    return { request: requests[0], verdict: verdicts[0] }
  }

  it("says the event's type where a redirect takes it along, unlike the endpoint's own headers", () => {
    const endpoint = endpointOf({ headerNames: { type: "x-topic" }, headers: { "x-key": "hush" } })
    const { request } = send(endpoint, "invoice.paid")
    const at = request?.headers.indexOf("x-topic") ?? -1
    assert.strictEqual(request?.headers[at + 1], "invoice.paid")
    assert.deepStrictEqual(request?.ownHeaders, ["x-key", "hush"])
    assert.notInclude(request?.headers ?? [], "x-key")
  })

  it("has the time-out of its type's policy, and its answer is judged by that policy", () => {
    const retryFor = {
      "invoice.>": quickRetry({ timeout: "7 seconds", statuses: { "500": "fail" } }),
      "*.paid": "slack"
    }
    const endpoint = endpointOf({ retryFor })
    const of = (type: string) => {
      const { request, verdict } = send(endpoint, type)
      return [request?.timeoutMs, verdict]
    }
    assert.deepStrictEqual(of("invoice.paid"), [7_000, "fail"])
    assert.deepStrictEqual(of("order.paid"), [5_000, "retry"])
    assert.deepStrictEqual(of("order.sent"), [30_000, "retry"])
    const patient = endpointOf({ retryFor, timeout: "1 minute" })
    assert.strictEqual(send(patient, "invoice.paid").request?.timeoutMs, 60_000)
  })

  const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-"
  it.each([
    ["off", "01", false, `${trace}01`],
    ["sampled", "00", true, `${trace}00`],
    [
      "sampled",
      "01",
      true,
      `00-4bf92f3577b34da6a3ce929d0e0e4736-${attemptSpanId(deliveryOf(), 3)}-01`
    ]
  ])("has, with traces %s, of a traceparent with flags %s", (_, flags, traces, expected) => {
    const content = { traceparent: `${trace}${flags}`, tracestate: "a=b" }
    const { request } = send(endpointOf({}), "paid", { content, number: 3, traces })
    const headers = request?.headers ?? []
    const of = (name: string) => headers[headers.indexOf(name) + 1]
    assert.strictEqual(of("traceparent"), expected)
    assert.strictEqual(of("tracestate"), "a=b")
    assert.lengthOf(
      headers.filter((part) => part === "traceparent"),
      1
    )
  })

  it("has no traceparent where its event has none", () => {
    const { request } = send(endpointOf({}), "paid", { traces: true })
    assert.notInclude(request?.headers ?? [], "traceparent")
  })
})

const slack = (body: string): unknown =>
  JSON.parse(Buffer.from(formatted(Buffer.from(body), "slack")).toString("utf8"))

describe("a body for a chat tool", () => {
  it("is the alert in words", () => {
    const data = {
      ...{ state: "cleared", tenant: "acme", id: "alert_1", name: "dead-letters" },
      ...{ about: "endpoint", level: "warn", endpoint: "billing" },
      ...{ threshold: 1, unit: "", windowMs: 1, raisedAt: 1 }
    }
    assert.deepStrictEqual(slack(JSON.stringify({ data })), {
      text: "Petrel: dead-letters of acme/billing is over."
    })
  })

  it("is any other text as it is, with what would be markup escaped", () => {
    assert.deepStrictEqual(slack("<!channel> Ä & <b>"), {
      text: "&lt;!channel&gt; Ä &amp; &lt;b&gt;"
    })
  })
})
