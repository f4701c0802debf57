import { assert, describe, it } from "@effect/vitest"
import { PoisonGuard } from "../../../src/delivery/recovery/poison-guard.ts"

const handed = (deliveryCount: number, seq = 1) => ({
  deliveryCount,
  place: { stream: "S", seq, at: 0 }
})

describe("a message that comes again and again", () => {
  it("is watched when more hand-outs than attempts are known", () => {
    const poisonGuard = new PoisonGuard()
    assert.isFalse(poisonGuard.watches(handed(2), 0))
    assert.isTrue(poisonGuard.watches(handed(3), 0))
    assert.isFalse(poisonGuard.watches(handed(5), 3))
  })

  it("is not watched where this worker gave it back itself", () => {
    const poisonGuard = new PoisonGuard()
    poisonGuard.clear(handed(2))
    assert.isFalse(poisonGuard.watches(handed(9), 0))
    poisonGuard.forget(1)
    assert.isTrue(poisonGuard.watches(handed(9), 0))
  })

  it("is put off once for each worker that was lost with it, twice as long each time, up to 5 minutes", () => {
    const pauses = [0, 1, 2, 3, 12].map((trials) =>
      new PoisonGuard().pauseBefore(handed(3), trials)
    )
    assert.deepStrictEqual(pauses, [0, 1_000, 2_000, 4_000, 300_000])
    const poisonGuard = new PoisonGuard()
    assert.strictEqual(poisonGuard.pauseBefore(handed(3), 1), 1_000)
    assert.strictEqual(poisonGuard.pauseBefore(handed(4), 1), 0)
  })

  it("comes back later after each defect", () => {
    const poisonGuard = new PoisonGuard()
    assert.deepStrictEqual(
      [1, 2, 3].map(() => poisonGuard.afterDefect(1)),
      [1_000, 2_000, 4_000]
    )
  })
})
