import { assert, describe, it } from "@effect/vitest"
import {
  deadLetterQuota,
  estimateBytes,
  isCrowded,
  isOverQuota
} from "../../src/policy/storage-quotas.ts"

const space = (bytes: number) => ({ bytes, maxBytes: 1_000 })

const boundless = { bytes: 1e9, maxBytes: undefined }

/** One endpoint of one tenant, which has all of what its tenant has. */
const alone = (bytes: number, tenants = 1) => ({
  endpointBytes: bytes,
  tenantBytes: bytes,
  endpoints: 1,
  tenants
})

describe("a space that tenants share", () => {
  const cases: ReadonlyArray<readonly [string, boolean, ...Parameters<typeof isOverQuota>]> = [
    ["has no quota while at most half is taken", false, space(500), alone(500)],
    ["has none without a limit", false, boundless, alone(1e9)],
    ["gives one who is alone half of it", true, space(501), alone(501)],
    ["has a share for a second one that comes late", false, space(600), alone(100, 2)],
    ["three quarters of which one endpoint may take", true, space(900), alone(375, 2)],
    ["and no less", false, space(900), alone(374, 2)],
    [
      "has equal shares for three",
      true,
      space(700),
      { endpointBytes: 167, tenantBytes: 334, endpoints: 2, tenants: 3 }
    ],
    ["has them whatever the others hold", false, space(1_300), alone(180, 4)],
    ["has smaller shares far beyond its limit", true, space(1_500), alone(47, 4)],
    ["but shuts nobody out", false, space(1_500), alone(46, 4)],
    [
      "gives an endpoint half of its tenant's share while that is crowded",
      true,
      space(600),
      { endpointBytes: 250, tenantBytes: 300, endpoints: 2, tenants: 2 }
    ],
    [
      "has something for another endpoint of that tenant",
      false,
      space(600),
      { endpointBytes: 50, tenantBytes: 300, endpoints: 2, tenants: 2 }
    ],
    [
      "has a part for another endpoint that comes late, though its tenant holds its share",
      false,
      space(600),
      { endpointBytes: 50, tenantBytes: 500, endpoints: 9, tenants: 2 }
    ],
    [
      "and no more than a part",
      true,
      space(600),
      { endpointBytes: 56, tenantBytes: 500, endpoints: 9, tenants: 2 }
    ],
    [
      "has a quarter of it where the tenant holds a quarter more",
      true,
      space(800),
      { endpointBytes: 14, tenantBytes: 625, endpoints: 9, tenants: 2 }
    ],
    [
      "bounds the tenant before its endpoints",
      true,
      space(900),
      { endpointBytes: 0, tenantBytes: 750, endpoints: 9, tenants: 2 }
    ],
    [
      "bounds it by its share where the space is far beyond its limit",
      true,
      space(1_500),
      { endpointBytes: 0, tenantBytes: 125, endpoints: 9, tenants: 2 }
    ],
    [
      "is a tenant's own where there is no other",
      false,
      space(740),
      { ...alone(740), isOnlyTenant: true }
    ],
    [
      "three quarters of which its first endpoint may take, the rest waits for the next",
      true,
      space(750),
      { ...alone(750), isOnlyTenant: true }
    ],
    [
      "lets an endpoint take what its tenant does not need",
      false,
      space(900),
      { endpointBytes: 160, tenantBytes: 160, endpoints: 1, tenants: 3 }
    ]
  ]
  for (const [name, isOver, ...given] of cases)
    it(name, () => assert.strictEqual(isOverQuota(...given), isOver))

  it("is crowded once more than half is taken", () => {
    assert.isFalse(isCrowded(space(500)))
    assert.isTrue(isCrowded(space(501)))
    assert.isFalse(isCrowded(boundless))
  })

  it("lets nobody push another one below a share, whoever takes what he may", () => {
    const size = 10
    const taken = new Map<string, number>()
    const sum = () => [...taken.values()].reduce((all, bytes) => all + bytes, 0)
    const fill = (tenant: string) => {
      for (let n = 0; n < 1_000; n++) {
        const bytes = taken.get(tenant) ?? 0
        if (isOverQuota(space(sum()), alone(bytes, new Set(taken.keys()).add(tenant).size))) return
        taken.set(tenant, bytes + size)
      }
    }
    for (const tenant of ["a", "b", "c", "d"]) fill(tenant)
    // Who came first has more: nothing that was accepted is taken back.
    assert.deepStrictEqual([...taken.values()], [510, 380, 250, 190])
    assert.isAtMost(sum(), 1_500)
  })
})

describe("the estimate of what endpoints take of a stream", () => {
  const counts = new Map([
    ["t.a", 30],
    ["t.b", 10]
  ])

  it("takes messages for equally large", () => {
    const found = estimateBytes({ bytes: 4_000, messages: 40, counts })
    assert.deepStrictEqual(
      [...found],
      [
        ["t.a", 3_000],
        ["t.b", 1_000]
      ]
    )
  })

  it("weighs them by their usual size where that is known", () => {
    const found = estimateBytes({ bytes: 4_000, messages: 40, counts }, (key) =>
      key === "t.b" ? 310 : undefined
    )
    assert.deepStrictEqual(
      [...found],
      [
        ["t.a", 900],
        ["t.b", 3_100]
      ]
    )
  })

  it("adds up to what the stream has, whatever was usual", () => {
    const sizeOf = (key: string) => (key === "t.b" ? 30 : 10)
    const few = estimateBytes({ bytes: 6_000, messages: 40, counts }, sizeOf)
    assert.deepStrictEqual(
      [...few],
      [
        ["t.a", 3_000],
        ["t.b", 3_000]
      ]
    )
    const many = estimateBytes({ bytes: 300, messages: 41, counts }, sizeOf)
    assert.deepStrictEqual(
      [...many],
      [
        ["t.a", 150],
        ["t.b", 150]
      ]
    )
  })

  it("leaves out what the broker does not name", () => {
    const found = estimateBytes({ bytes: 8_000, messages: 80, counts })
    assert.strictEqual(
      [...found.values()].reduce((sum, bytes) => sum + bytes, 0),
      4_000
    )
  })

  it("finds nothing in an empty stream", () =>
    assert.lengthOf([...estimateBytes({ bytes: 0, messages: 0, counts: new Map() })], 0))
})

const use = (messages: number, byTenant: Readonly<Record<string, number>>) => ({
  bytes: messages * 100,
  maxBytes: 10_000,
  messages,
  byTenant: new Map(Object.entries(byTenant))
})

describe("the quota of dead letters", () => {
  const cases: ReadonlyArray<
    readonly [name: string, quota: number | undefined, ...Parameters<typeof deadLetterQuota>]
  > = [
    ["is none while at most half is used", undefined, use(50, { a: 40, b: 10 }), "a"],
    ["is none where one tenant has them all", undefined, use(90, { a: 90 }), "a"],
    ["is an equal part beyond that", 50, use(60, { a: 50, b: 10 }), "a"],
    ["counts the one who is about to have the first", 50, use(60, { a: 60 }), "b"],
    ["is the same for all", 33, use(60, { a: 40, b: 15, c: 5 }), "c"],
    ["is one at least", 1, { ...use(2, { a: 1, b: 1 }), bytes: 9_999 }, "c"],
    ["is none without a limit", undefined, { ...use(60, { a: 50, b: 10 }), maxBytes: -1 }, "a"],
    ["is none where nobody counted", undefined, { ...use(60, {}), byTenant: undefined }, "a"]
  ]
  for (const [name, quota, ...given] of cases)
    it(name, () => assert.strictEqual(deadLetterQuota(...given), quota))
})
