import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { init } from "../../src/broker/init.ts"
import { readInstallation } from "../../src/broker/installation.ts"
import { installation, testTopology } from "../kit/engine.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

describe("the id of an installation", () => {
  scenario("is given once by init, and is of this installation only", (_, server) =>
    Effect.gen(function* () {
      const first = yield* readInstallation
      assert.match(first ?? "", /^[0-9a-f-]{36}$/)
      yield* init(testTopology)
      assert.strictEqual(yield* readInstallation, first)
      const other = yield* installation(server).run(readInstallation)
      assert.match(other ?? "", /^[0-9a-f-]{36}$/)
      assert.notStrictEqual(other, first)
    })
  )
})
