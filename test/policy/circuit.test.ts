import { assert, describe, it } from "@effect/vitest"
import type { CircuitSettings } from "../../src/domain/circuit.ts"
import { isHealthy } from "../../src/domain/health.ts"
import {
  isHeld,
  isOpen,
  isProbe,
  isRamping,
  mayProbe,
  ramp,
  toHalfOpen
} from "../../src/policy/circuit.ts"

import { endpointWith, well } from "./judged-endpoint.ts"

const minute = 60_000
const day = 24 * 60 * minute
const opened = (overrides: Partial<CircuitSettings> = {}) => {
  const endpoint = endpointWith({ failures: 1, ...overrides })
  endpoint.fails(1_000)
  return endpoint
}

const probed = (overrides: Partial<CircuitSettings> = {}) => {
  const endpoint = opened(overrides)
  endpoint.halfOpens(40_000)
  return endpoint
}

describe("a closed circuit", () => {
  it("opens at the fifth failure in a row, for 30 seconds, and says why", () => {
    const endpoint = endpointWith()
    for (const at of [1, 2, 3, 4]) {
      assert.deepStrictEqual(endpoint.fails(at).transitions, [])
      assert.isFalse(isOpen(endpoint.now()))
    }
    assert.deepStrictEqual(endpoint.fails(5).transitions, ["circuit-opened"])
    assert.deepStrictEqual(endpoint.now().circuit, {
      state: "open",
      since: 5,
      coolDown: 30_000,
      until: 30_005,
      why: "5 failures in a row, the last: 503"
    })
  })

  it("begins to count anew after a success, and after a permanent failure", () => {
    for (const answer of ["succeeds", "refuses"] as const) {
      const endpoint = endpointWith()
      for (const at of [1, 2, 3, 4]) endpoint.fails(at)
      endpoint[answer](5)
      for (const at of [6, 7, 8, 9]) endpoint.fails(at)
      assert.isFalse(isOpen(endpoint.now()), answer)
      endpoint.fails(10)
      assert.isTrue(isOpen(endpoint.now()), answer)
    }
  })

  it("opens when too many failed, though never many in a row", () => {
    const endpoint = endpointWith()
    assert.deepStrictEqual(endpoint.fails(1, {}, { rateExceeded: true }).transitions, [
      "circuit-opened"
    ])
    assert.match(endpoint.now().circuit.why ?? "", /50% of the latest attempts/)
  })

  it("does not open for a success, or a permanent failure, however many failed before", () => {
    const endpoint = endpointWith()
    endpoint.fails(1)
    endpoint.succeeds(2, {}, { rateExceeded: true })
    endpoint.refuses(3)
    assert.isFalse(isOpen(endpoint.now()))
  })

  it("costs nothing as long as all goes well", () => {
    const endpoint = endpointWith()
    for (let at = 0; at < 1_000; at++)
      assert.deepStrictEqual(endpoint.succeeds(at), { health: well, transitions: [] })
    assert.strictEqual(endpoint.now(), well)
  })

  it("leaves nothing worth storing when a success follows a failure", () => {
    const endpoint = endpointWith()
    endpoint.fails(1, { error: "no connection" })
    assert.isFalse(isHealthy(endpoint.now()))
    endpoint.succeeds(2)
    assert.deepStrictEqual(endpoint.now(), well)
    assert.isTrue(isHealthy(endpoint.now()))
  })
})

describe("an open circuit", () => {
  it("may be probed when its cool-down is over, and not before", () => {
    const endpoint = opened()
    assert.isFalse(mayProbe(endpoint.now(), 30_999))
    assert.isTrue(mayProbe(endpoint.now(), 31_000))
  })

  it("is left alone for as long as the receiver asked, also by a probe", () => {
    const endpoint = endpointWith({ failures: 1 })
    endpoint.fails(1_000, { retryAt: 90_000 })
    assert.isFalse(mayProbe(endpoint.now(), 89_999))
    assert.isTrue(mayProbe(endpoint.now(), 90_000))
  })

  it("does not heed the answers to what was sent before it opened", () => {
    const endpoint = opened()
    const before = endpoint.now()
    for (const at of [1_001, 1_002]) {
      endpoint.fails(at)
      endpoint.succeeds(at)
      assert.strictEqual(endpoint.now(), before)
    }
    endpoint.halfOpens(31_000)
    const ready = endpoint.now()
    endpoint.fails(31_010, { sentAt: 900 })
    endpoint.succeeds(31_011, { sentAt: 901 })
    assert.strictEqual(endpoint.now(), ready)
  })

  it("learns from a late answer until when it is to be left alone", () => {
    const endpoint = opened()
    endpoint.fails(1_001, { retryAt: 99_000 })
    assert.strictEqual(endpoint.now().notBefore, 99_000)
    assert.isFalse(mayProbe(endpoint.now(), 98_999))
  })
})

describe("a cool-down", () => {
  const nearOne = 1 - 2 ** -53
  const first = (spread: number) => {
    const endpoint = endpointWith({ failures: 1 })
    endpoint.fails(0, {}, { spread })
    return endpoint.now().circuit.coolDown
  }
  /** As long as it gets when probe after probe fails. */
  const longest = (spread: number) => {
    const endpoint = endpointWith({ failures: 1 })
    for (let n = 0; n < 20; n++) {
      endpoint.fails(n * day, {}, { spread })
      endpoint.halfOpens(n * day + 20 * minute)
    }
    return endpoint.now().circuit.coolDown
  }

  it("is spread over a quarter more, from the first one on", () => {
    assert.deepStrictEqual([first(0), first(0.5), first(nearOne)], [30_000, 33_750, 37_500])
  })

  it("is spread below its limit when it has got there, so that none is in step with others", () => {
    assert.deepStrictEqual([longest(0), longest(nearOne)], [12 * minute, 15 * minute])
  })
})

describe("what is told of a failure", () => {
  it("is not longer than a line or two", () => {
    const endpoint = endpointWith({ failures: 1 })
    endpoint.fails(1, { error: "x".repeat(10_000) })
    assert.isBelow(JSON.stringify(endpoint.now()).length, 1_000)
  })
})

describe("a half-open circuit", () => {
  it("closes at the second success, and has no failures in a row from the first on", () => {
    const endpoint = probed()
    assert.deepStrictEqual(endpoint.succeeds(40_010, { delivery: "a.hook" }).transitions, [])
    const { circuit, failingSince, failuresInRow, giveUpAt } = endpoint.now()
    assert.deepStrictEqual(
      [circuit.state, circuit.successes, circuit.lastProbe],
      ["half-open", 1, "a.hook"]
    )
    assert.deepStrictEqual([failingSince, giveUpAt, failuresInRow], [undefined, undefined, 0])
    assert.deepStrictEqual(endpoint.succeeds(40_020).transitions, ["circuit-closed"])
    assert.isFalse(isOpen(endpoint.now()))
  })

  it("opens again at a failure, for twice as long, and knows which delivery it was", () => {
    const endpoint = probed()
    endpoint.succeeds(40_010)
    assert.deepStrictEqual(endpoint.fails(40_020, { delivery: "b.hook" }).transitions, [
      "circuit-opened"
    ])
    const { circuit } = endpoint.now()
    assert.deepStrictEqual(
      [circuit.state, circuit.coolDown, circuit.until, circuit.lastProbe],
      ["open", 60_000, 100_020, "b.hook"]
    )
  })

  it("stays so at a permanent failure, and waits for another delivery", () => {
    const endpoint = probed()
    assert.deepStrictEqual(endpoint.refuses(40_010, { delivery: "c.hook" }).transitions, [])
    assert.deepStrictEqual(
      [endpoint.now().circuit.state, endpoint.now().circuit.lastProbe],
      ["half-open", "c.hook"]
    )
    assert.isTrue(mayProbe(endpoint.now(), 40_011))
  })

  it("counts the answer to a probe that seems to be sent a moment before it was half-open", () => {
    const endpoint = probed()
    endpoint.succeeds(40_003, { sentAt: 39_999.2 })
    assert.strictEqual(endpoint.now().circuit.successes, 1)
  })

  it("is what an open one becomes, and no other", () => {
    const half = probed().now()
    assert.strictEqual(toHalfOpen(half, 50_000), half)
    assert.strictEqual(toHalfOpen(well, 50_000), well)
  })
})

describe("a probe", () => {
  // Its failures began at 1,000, and it became half-open at 40,000.
  const half = probed({ successes: 2 }).now()
  const sent = (sentAt: number) => ({ at: sentAt + 100, sentAt })

  for (const [is, name, health, outcome, lastAttemptAt] of [
    [true, "of a delivery that failed when the outage began", half, sent(40_500), 1_000],
    [true, "of a delivery that was never attempted", half, sent(40_500), undefined],
    [false, "not where the endpoint began to fail after that", half, sent(40_500), 999],
    [false, "not where it was sent before the circuit became half-open", half, sent(39_000), 1_000],
    [false, "not of an endpoint whose circuit is closed", well, sent(40_500), 1_000],
    [false, "not of one whose circuit is open", opened().now(), sent(40_500), 1_000]
  ] as const)
    it(`is a request ${name}`, () => {
      assert.strictEqual(isProbe(health, outcome, lastAttemptAt), is)
    })

  it("is no request after another one succeeded: the delivery itself may be what fails", () => {
    const endpoint = probed({ successes: 2 })
    endpoint.succeeds(41_000)
    assert.strictEqual(endpoint.now().circuit.state, "half-open")
    assert.isFalse(isProbe(endpoint.now(), sent(42_000), 30_000))
  })
})

describe("a circuit that has closed", () => {
  const closing = () => {
    const endpoint = endpointWith({ failures: 2, successes: 1 })
    for (const at of [1, 2]) endpoint.fails(at)
    endpoint.halfOpens(40_000)
    endpoint.succeeds(40_010)
    return endpoint
  }

  it("opens at the first failure while traffic comes back, for longer than before", () => {
    const endpoint = closing()
    assert.isTrue(isRamping(endpoint.now()))
    assert.isFalse(isHealthy(endpoint.now()))
    endpoint.succeeds(40_020, {}, { ramping: true })
    assert.deepStrictEqual(endpoint.fails(40_030, {}, { ramping: true }).transitions, [
      "circuit-opened"
    ])
    assert.strictEqual(endpoint.now().circuit.coolDown, 60_000)
  })

  it("stores nothing for a success while traffic comes back", () => {
    const endpoint = closing()
    const before = endpoint.now()
    endpoint.succeeds(40_020, {}, { ramping: true })
    assert.strictEqual(endpoint.now(), before)
  })

  it("is as good as new once traffic is back", () => {
    const endpoint = closing()
    endpoint.succeeds(50_000)
    assert.isFalse(isRamping(endpoint.now()))
    assert.isTrue(isHealthy(endpoint.now()))
    endpoint.fails(50_010)
    assert.isFalse(isOpen(endpoint.now()))
    endpoint.fails(50_020)
    assert.strictEqual(endpoint.now().circuit.coolDown, 30_000)
  })

  it("does not heed a failure of what was sent while it was open", () => {
    const endpoint = closing()
    const before = endpoint.now()
    endpoint.fails(40_020, { sentAt: 900 }, { ramping: true })
    assert.strictEqual(endpoint.now(), before)
  })
})

describe("giving an endpoint up", () => {
  it("comes after five days of nothing but failures", () => {
    const endpoint = opened()
    endpoint.halfOpens(2_000)
    assert.isUndefined(endpoint.fails(1_000 + 5 * day - 1).giveUp)
    endpoint.halfOpens(1_000 + 5 * day)
    assert.strictEqual(
      endpoint.fails(1_000 + 5 * day, { error: "connection: refused" }).giveUp,
      "nothing but failures since 1970-01-01T00:00:01.000Z, the last: 503 connection: refused"
    )
  })

  it("begins to count anew when one probe succeeds", () => {
    const endpoint = probed()
    endpoint.succeeds(4 * day)
    assert.isUndefined(endpoint.fails(6 * day).giveUp)
    assert.strictEqual(endpoint.now().giveUpAt, 11 * day)
  })

  it("follows the settings when they change meanwhile", () => {
    const longer = endpointWith({ giveUpAfter: 10 * day }, probed().now())
    assert.isUndefined(longer.fails(6 * day).giveUp)
    assert.strictEqual(longer.now().giveUpAt, 1_000 + 10 * day)
  })

  it("comes at the hundredth permanent failure since the last success", () => {
    const endpoint = endpointWith()
    for (let n = 1; n <= 50; n++) endpoint.refuses(n)
    endpoint.succeeds(51)
    for (let n = 1; n < 100; n++) assert.isUndefined(endpoint.refuses(n).giveUp)
    endpoint.fails(100)
    assert.strictEqual(
      endpoint.refuses(101).giveUp,
      "100 permanent failures in a row, the last: 422"
    )
  })
})

describe("a Retry-After", () => {
  it("holds until the latest that was asked for, and is forgotten after", () => {
    const endpoint = endpointWith()
    endpoint.fails(1, { retryAt: 500 })
    endpoint.fails(2, { retryAt: 300 })
    assert.isTrue(isHeld(endpoint.now(), 499))
    assert.isFalse(isHeld(endpoint.now(), 500))
    endpoint.succeeds(400)
    assert.strictEqual(endpoint.now().notBefore, 500)
    endpoint.succeeds(501)
    assert.isTrue(isHealthy(endpoint.now()))
  })
})

describe("coming back", () => {
  it("takes one more for each success, up to the cap", () => {
    assert.deepStrictEqual(
      [ramp(1, 3), ramp(2, 3), ramp(3, 3), ramp(1, 1), ramp(7, 3)],
      [2, 3, 3, 1, 3]
    )
  })
})
