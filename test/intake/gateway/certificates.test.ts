import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { vi } from "vitest"
import { makeCertificates } from "../../../src/intake/gateway/certificates.ts"

const asked = (fetch: (url: string) => Promise<Response>) =>
  Effect.acquireRelease(
    Effect.sync(() =>
      vi.spyOn(globalThis, "fetch").mockImplementation((url) => fetch(String(url)))
    ),
    (spy) => Effect.sync(() => spy.mockRestore())
  )

const result = (ask: () => Promise<string>) => Effect.result(Effect.tryPromise(ask))

describe("certificates of a provider", () => {
  it.live("are kept while strangers name others that there are not", () =>
    Effect.gen(function* () {
      const spy = yield* asked((url) =>
        Promise.resolve(
          url.endsWith("/right") ? new Response("PEM") : new Response("", { status: 404 })
        )
      )
      const certificate = makeCertificates(() => 0)
      assert.strictEqual(yield* Effect.promise(() => certificate("https://p/right")), "PEM")
      for (let n = 0; n < 40; n++)
        assert.isTrue(Result.isFailure(yield* result(() => certificate(`https://p/${n}`))))
      assert.strictEqual(yield* Effect.promise(() => certificate("https://p/right")), "PEM")
      assert.lengthOf(spy.mock.calls, 41)
    })
  )

  it.live("are fetched eight at a time, and each once: more are refused at once", () =>
    Effect.gen(function* () {
      const answers: Array<(response: Response) => void> = []
      yield* asked(() => new Promise((resolve) => answers.push(resolve)))
      const certificate = makeCertificates(() => 0)
      const first = Array.from({ length: 8 }, (_, n) => certificate(`https://p/${n}`))
      const same = certificate("https://p/0")
      const ninth = yield* result(() => certificate("https://p/9"))
      assert.isTrue(Result.isFailure(ninth))
      assert.lengthOf(answers, 8)
      for (const answer of answers) answer(new Response("PEM"))
      assert.deepStrictEqual(
        new Set(yield* Effect.promise(() => Promise.all([...first, same]))),
        new Set(["PEM"])
      )
      const after = certificate("https://p/9")
      answers.at(-1)?.(new Response("PEM"))
      assert.strictEqual(yield* Effect.promise(() => after), "PEM")
    })
  )
})
