import { assert, describe, it } from "@effect/vitest"
import { Suspicion } from "../../src/delivery/memory/suspicion.ts"

const handed = (handedOut: number, seq = 1) => ({ handedOut, place: { stream: "S", seq, at: 0 } })

describe("a message that comes again and again", () => {
  it("is watched when more hand-outs than attempts are known", () => {
    const suspicion = new Suspicion()
    assert.isFalse(suspicion.watches(handed(2), 0))
    assert.isTrue(suspicion.watches(handed(3), 0))
    assert.isFalse(suspicion.watches(handed(5), 3))
  })

  it("is not watched where this worker gave it back itself", () => {
    const suspicion = new Suspicion()
    suspicion.clear(handed(2))
    assert.isFalse(suspicion.watches(handed(9), 0))
    suspicion.forget(1)
    assert.isTrue(suspicion.watches(handed(9), 0))
  })

  it("is put off once for each worker that was lost with it, twice as long each time, up to 5 minutes", () => {
    const pauses = [0, 1, 2, 3, 12].map((trials) => new Suspicion().pauseBefore(handed(3), trials))
    assert.deepStrictEqual(pauses, [0, 1_000, 2_000, 4_000, 300_000])
    const suspicion = new Suspicion()
    assert.strictEqual(suspicion.pauseBefore(handed(3), 1), 1_000)
    assert.strictEqual(suspicion.pauseBefore(handed(4), 1), 0)
  })

  it("comes back later after each defect", () => {
    const suspicion = new Suspicion()
    assert.deepStrictEqual(
      [1, 2, 3].map(() => suspicion.afterDefect(1)),
      [1_000, 2_000, 4_000]
    )
  })
})
