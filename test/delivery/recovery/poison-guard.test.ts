import { assert, describe, it } from "@effect/vitest"
import { PoisonGuard } from "../../../src/delivery/recovery/poison-guard.ts"

describe("a message that is delivered again and again", () => {
  it("is suspect when it was delivered more often than attempts are recorded", () => {
    const guard = new PoisonGuard()
    assert.isFalse(guard.isSuspect(1, 2))
    assert.isTrue(guard.isSuspect(1, 3))
  })

  it("is not suspect where this worker gave it back itself, until it has ended", () => {
    const guard = new PoisonGuard()
    guard.clear(1)
    assert.isFalse(guard.isSuspect(1, 9))
    guard.forget(1)
    assert.isTrue(guard.isSuspect(1, 9))
  })

  it("stays suspect once it was paused, whatever this worker gives back", () => {
    const guard = new PoisonGuard()
    guard.pause(1)
    guard.clear(1)
    assert.isTrue(guard.wasPaused(1))
    assert.isFalse(guard.isCleared(1))
    guard.forget(1)
    assert.isFalse(guard.wasPaused(1))
  })

  it("comes back later after each defect", () => {
    const guard = new PoisonGuard()
    assert.deepStrictEqual(
      [1, 2, 3].map(() => guard.afterDefect(1)),
      [1_000, 2_000, 4_000]
    )
  })
})
