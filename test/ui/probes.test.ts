import { assert, describe, vi } from "@effect/vitest"
import { Effect } from "effect"
import { browser, hasBrowser } from "../kit/browser.ts"
import { endpoint, history, publish, worker } from "../kit/engine.ts"
import { logIn, openPage, operatorPath, pagesConsole } from "../kit/pages.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

vi.setConfig({ testTimeout: 180_000 })

const { scenario } = onServer()

const minute = 60_000

/** Two attempts, and twenty probes 5 minutes apart: more than a policy of 16 attempts has. */
const attemptsFrom = (at: number) =>
  Array.from({ length: 22 }, (_, before) => {
    const beganAt = at + before * 5 * minute
    return {
      ...{ number: before + 1, isSuccess: false, durationMs: 1, worker: "w1" },
      ...(before < 2 ? {} : { isProbe: true }),
      error: { class: "refused", message: "connect ECONNREFUSED" },
      at: new Date(beganAt).toISOString(),
      nextAttemptAt: new Date(beganAt + 5 * minute).toISOString()
    }
  })

describe.skipIf(!hasBrowser)(
  "a delivery of an endpoint whose circuit is open, in a browser",
  () => {
    scenario("has the attempts left that probes have not used up", (place) =>
      Effect.gen(function* () {
        yield* endpoint({ id: "billing", retry: "default" })
        const console = yield* pagesConsole(place)
        const path = yield* operatorPath()
        const started = yield* browser
        yield* Effect.promise(async () => {
          const opened = await openPage(started, console.url)
          const { page, wrong } = opened
          await logIn(opened, console.url, path)
          const attempts = attemptsFrom(Date.now() - 21 * 5 * minute)
          const round = {
            ...{ round: "0", begun: null, attempts, lastAttempt: 22, state: "open", repeats: 0 },
            ...{ waits: { until: attempts.at(-1)?.nextAttemptAt, by: "nak" } },
            holds: [] as ReadonlyArray<object>
          }
          const delivery = {
            ...{ delivery: "acme.one.billing", tenant: "acme", endpoint: "billing" },
            ...{ event: "acme.one", eventSeq: 1, type: "paid", rounds: [round] }
          }
          await page.route(/\/deliveries\/acme\.one\.billing$/, (route) =>
            route.request().resourceType() === "document"
              ? route.continue()
              : route.fulfill({ json: delivery })
          )
          await page.goto(`${console.url}/ui/deliveries/acme/acme.one.billing`)
          await page.getByText("If it keeps failing: 14 more of 16 attempts").waitFor()
          // By the numbers that they will have.
          await page.getByRole("cell", { name: "24", exact: true }).waitFor()
          // The circuit says when a probe is followed by another one.
          assert.strictEqual(await page.getByText("Next attempt 5 min later.").count(), 20)
          assert.strictEqual(await page.getByText("the receiver's Retry-After").count(), 2)
          assert.strictEqual(await page.getByRole("cell", { name: "not known" }).count(), 0)

          // How long its circuit stays open depends on its receiver.
          const until = new Date(Date.now() + 20 * minute).toISOString()
          const hold = { by: "circuit", says: "for its circuit", until, freedBy: "2 probes" }
          delivery.rounds = [{ ...round, holds: [hold] }]
          await page.reload()
          await page.getByRole("cell", { name: "not known" }).first().waitFor()
          await page
            .getByRole("cell", { name: /^in 2[01] min$/ })
            .first()
            .waitFor()
          assert.deepStrictEqual(wrong, [])
        })
      })
    )

    scenario("says what becomes of the endpoint if it keeps failing", (place) =>
      Effect.gen(function* () {
        const to = yield* receiver({ answer: () => ({ status: 500 }) })
        for (const onGiveUp of ["suspend", "disable"] as const)
          yield* endpoint({ id: onGiveUp, url: to.url, circuit: { failures: 1, onGiveUp } })
        const facts = yield* history
        yield* worker()
        yield* publish("a", "{}")
        yield* facts.count("circuit-opened", 2)
        const console = yield* pagesConsole(place)
        const path = yield* operatorPath()
        const started = yield* browser
        yield* Effect.promise(async () => {
          const opened = await openPage(started, console.url)
          await logIn(opened, console.url, path)
          for (const [id, becomes] of [
            ["suspend", "suspended"],
            ["disable", "disabled"]
          ] as const) {
            await opened.page.goto(`${console.url}/ui/endpoints/acme/${id}`)
            await opened.page.getByText(`If it keeps failing, it is ${becomes} in`).waitFor()
          }
          assert.deepStrictEqual(opened.wrong, [])
        })
      })
    )
  }
)
