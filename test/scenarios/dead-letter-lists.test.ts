import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { bury } from "../cli/commands/dead/dead-letters.ts"
import { startConsole } from "../kit/console.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

/** Nine dead letters of acme: 1, 4, 7 of `a`, 2, 5, 8 of `b`, 3, 6, 9 of `c`. */
const buried = Effect.gen(function* () {
  for (let n = 0; n < 9; n++)
    yield* bury({
      endpoint: ["a", "b", "c"][n % 3] ?? "",
      event: `acme-${n + 1}`,
      reason: n < 6 ? "permanent" : "attempts",
      progress: { attempts: 1, lastStatus: n < 3 ? 404 : n < 6 ? 410 : 503 }
    })
  const { ask, token: make } = yield* startConsole()
  const token = yield* make({ scopes: ["dead:read"] })
  return Effect.fnUntraced(function* (query: string) {
    const { json, status, text } = yield* ask(`/v1/tenants/acme/dead-letters?${query}`, { token })
    assert.strictEqual(status, 200, text)
    const { deadLetters, next, previous } = json as {
      readonly deadLetters: ReadonlyArray<{ readonly id: number }>
      readonly next?: string
      readonly previous?: string
    }
    return { ids: deadLetters.map(({ id }) => id), next, previous }
  })
})

describe("GET /dead-letters", () => {
  scenario("takes several values of a filter, of which any holds", () =>
    Effect.gen(function* () {
      const list = yield* buried
      for (const [query, ids] of [
        ["endpoint=a&endpoint=c", [1, 3, 4, 6, 7, 9]],
        ["endpoint=a&endpoint=b&endpoint=a", [1, 2, 4, 5, 7, 8]],
        ["status=404&status=5xx", [1, 2, 3, 7, 8, 9]],
        ["reason=permanent&reason=attempts&endpoint=b", [2, 5, 8]],
        ["status=410", [4, 5, 6]]
      ] as const)
        assert.deepStrictEqual((yield* list(query)).ids, [...ids], query)
    })
  )

  scenario("pages forth and back", () =>
    Effect.gen(function* () {
      const list = yield* buried
      for (const open of ["", "&open=true"]) {
        const at = (cursor: string | undefined) =>
          list(`endpoint=a&endpoint=b&limit=2${open}&cursor=${cursor}`)
        const first = yield* list(`endpoint=a&endpoint=b&limit=2${open}`)
        assert.deepStrictEqual([first.ids, first.previous], [[1, 2], undefined])
        const second = yield* at(first.next)
        const third = yield* at(second.next)
        assert.deepStrictEqual(
          [second.ids, third.ids],
          [
            [4, 5],
            [7, 8]
          ]
        )
        assert.isUndefined(third.next)
        const back = yield* at(third.previous)
        assert.deepStrictEqual(back.ids, [4, 5])
        const begin = yield* at(back.previous)
        assert.deepStrictEqual([begin.ids, begin.previous], [[1, 2], undefined])
        assert.deepStrictEqual((yield* at(begin.next)).ids, [4, 5])
      }
    })
  )

  scenario("refuses a cursor that names no place of a list", () =>
    Effect.gen(function* () {
      const { ask, token: make } = yield* startConsole()
      const token = yield* make({ scopes: ["dead:read"] })
      for (const at of [{ after: -5 }, { before: 0 }, { before: -3 }]) {
        const cursor = Buffer.from(JSON.stringify(["dead-letters", at])).toString("base64url")
        const { json, status } = yield* ask(`/v1/tenants/acme/dead-letters?cursor=${cursor}`, {
          token
        })
        assert.strictEqual(status, 400, JSON.stringify(at))
        assert.deepInclude(json, { type: "urn:petrel:problem:invalid-request" })
      }
    })
  )
})
