import { assert, describe, it } from "@effect/vitest"
import type { Configuration, SettingDifference } from "../../src/domain/configuration.ts"
import { configurationOf, differencesOf } from "../../src/domain/configuration.ts"
import type { EndpointJson } from "../../src/domain/endpoint.ts"

const endpoint: EndpointJson = {
  v: 1,
  tenant: "acme",
  id: "hook",
  generation: "g1",
  url: "https://example.com/a?key=hush",
  types: ["invoice.>"],
  sign: "standard",
  secrets: [{ value: "whsec_hush", createdAt: 1 }],
  retry: "default",
  maxInFlight: 10,
  redirects: 3,
  headers: { "x-key": "hush" },
  createdAt: 1,
  updatedAt: 1
}
const policy = {
  backoff: { kind: "fixed", delay: "5000 millis" },
  jitter: "none",
  maxAttempts: 5,
  window: "60000 millis",
  retryAfterCap: "86400000 millis"
} as const

const of = (changes: Partial<EndpointJson>): Configuration =>
  configurationOf({ ...endpoint, ...changes })

describe("the difference of two configurations", () => {
  it.each<{
    readonly name: string
    readonly before?: Partial<EndpointJson>
    readonly after: Partial<EndpointJson>
    readonly found: ReadonlyArray<SettingDifference>
  }>([
    { name: "is nothing where nothing was changed", after: {}, found: [] },
    {
      name: "is nothing where a value that is not told was changed",
      after: {
        headers: { "x-key": "other" },
        secrets: [{ value: "whsec_other", createdAt: 1 }],
        updatedAt: 2
      },
      found: []
    },
    {
      name: "has lists as a whole",
      after: { types: ["invoice.>", "order.>"], headers: { "x-new": "", "x-key": "" } },
      found: [
        { setting: "types", from: ["invoice.>"], to: ["invoice.>", "order.>"] },
        { setting: "headers", from: ["x-key"], to: ["x-key", "x-new"] }
      ]
    },
    {
      name: "has scheme, host and port of a URL",
      after: { url: "http://example.com:8080/a?key=hush" },
      found: [{ setting: "url", from: "https://example.com", to: "http://example.com:8080" }]
    },
    {
      name: "has a URL whose path alone was changed, and does not tell it",
      after: { url: "https://example.com/a?key=other" },
      found: [{ setting: "url", from: "https://example.com", to: "https://example.com" }]
    },
    {
      name: "leaves out what is not set, before or after",
      before: { timeout: "5000 millis" },
      after: { rate: { perSecond: 20, burst: 1 } },
      found: [
        { setting: "rate", to: { perSecond: 20, burst: 1 } },
        { setting: "timeout", from: "5000 millis" }
      ]
    },
    {
      name: "has circuit and alerts part by part",
      before: { circuit: { failures: 3, successes: 2 } },
      after: { circuit: { failures: 9, successes: 2 }, alerts: { successWarnPercent: 98 } },
      found: [
        { setting: "circuit.failures", from: 3, to: 9 },
        { setting: "alerts.successWarnPercent", to: 98 }
      ]
    },
    {
      name: "has alerts as a whole where they are off",
      before: { alerts: { successWarnPercent: 98 } },
      after: { alerts: "off" },
      found: [{ setting: "alerts", from: { successWarnPercent: 98 }, to: "off" }]
    },
    {
      name: "has a retry policy as a whole beside a preset, else part by part",
      before: { retry: policy },
      after: { retry: { ...policy, maxAttempts: 8 } },
      found: [{ setting: "retry.maxAttempts", from: 5, to: 8 }]
    },
    {
      name: "has retry policies by event types, and names of headers one by one",
      before: { retryFor: { "invoice.>": "stripe", a: "slack" }, headerNames: { id: "x-id" } },
      after: { retryFor: { "invoice.>": policy, a: "slack" }, headerNames: { type: "x-type" } },
      found: [
        { setting: "headerNames.id", from: "x-id" },
        { setting: "headerNames.type", to: "x-type" },
        { setting: "retryFor.invoice.>", from: "stripe", to: policy }
      ]
    },
    {
      name: "has the name of a preset",
      after: { retry: policy },
      found: [{ setting: "retry", from: "default", to: policy }]
    },
    {
      name: "has when secrets were made, and until when they are valid",
      after: {
        secrets: [
          { value: "whsec_new", createdAt: 2 },
          { value: "whsec_hush", createdAt: 1, until: 9 }
        ]
      },
      found: [
        {
          setting: "secrets",
          from: [{ createdAt: 1 }],
          to: [{ createdAt: 2 }, { createdAt: 1, until: 9 }]
        }
      ]
    },
    {
      name: "has the state, and the generation first",
      before: { paused: { at: 1, by: "ana" } },
      after: { generation: "g2", disabled: { at: 2, by: "w1", reason: "410" } },
      found: [
        { setting: "generation", from: "g1", to: "g2" },
        { setting: "disabled", to: { at: 2, by: "w1", reason: "410" } },
        { setting: "paused", from: { at: 1, by: "ana" } }
      ]
    }
  ])("$name", ({ after, before = {}, found }) => {
    assert.deepStrictEqual(differencesOf(of(before), of(after)), found)
  })

  it("of a new endpoint is all that is set, and nothing that is secret", () => {
    const found = differencesOf(undefined, of({ circuit: { failures: 3 } }))
    assert.deepStrictEqual(found, [
      { setting: "generation", to: "g1" },
      { setting: "url", to: "https://example.com" },
      { setting: "types", to: ["invoice.>"] },
      { setting: "sign", to: "standard" },
      { setting: "secrets", to: [{ createdAt: 1 }] },
      { setting: "retry", to: "default" },
      { setting: "maxInFlight", to: 10 },
      { setting: "circuit.failures", to: 3 },
      { setting: "redirects", to: 3 },
      { setting: "headers", to: ["x-key"] }
    ])
    assert.notInclude(JSON.stringify(found), "hush")
  })
})
