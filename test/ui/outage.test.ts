import { assert, describe, vi } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { removeEndpoint } from "../../src/endpoints/endpoint-store.ts"
import { browser, hasBrowser } from "../kit/browser.ts"
import { startConsole } from "../kit/console.ts"
import { endpoint } from "../kit/engine.ts"
import { faults, logIn, openPage, operatorPath } from "../kit/pages.ts"
import { onServer } from "../kit/scenario.ts"

vi.setConfig({ testTimeout: 180_000 })

const { scenario } = onServer()

describe.skipIf(!hasBrowser)("an open page, in a browser", () => {
  scenario("outlives a restart of its console, and says what it waits for", () =>
    Effect.gen(function* () {
      yield* endpoint({ id: "billing", description: "before" })
      const first = yield* Scope.make()
      const console = yield* Scope.provide(startConsole({ hasPages: true }), first)
      const port = Number(new URL(console.url).port)
      const operator = yield* operatorPath()
      const started = yield* browser
      const watched = yield* Effect.promise(() => openPage(started, console.url))
      const { page, wrong } = watched
      yield* Effect.promise(async () => {
        await logIn(watched, console.url, operator)
        // An answer that takes long leaves no empty page, and what is typed meanwhile stays.
        let release = () => undefined as unknown
        const held = new Promise((resolve) => {
          release = () => resolve(undefined)
        })
        await page.route("**/v1/**", async (route) => {
          await held
          await route.continue()
        })
        await page.goto(`${console.url}/ui/endpoints/acme/billing/settings`)
        await page.getByText("Loading…").waitFor()
        assert.deepStrictEqual(await faults(page, ["light"]), [])
        release()
        await page.locator("#description").fill("typed before the restart")
        await page.unroute("**/v1/**")
      })
      yield* Scope.close(first, Exit.void)
      yield* Effect.promise(async () => {
        await page.getByRole("button", { name: "Save" }).click()
        await page.getByText("The console does not answer").waitFor()
      })
      yield* startConsole({ hasPages: true, port })
      yield* Effect.promise(async () => {
        // The session is the same, and so is what was typed.
        await page.getByRole("button", { name: "Save" }).click()
        await page.getByText("Saved: description").waitFor()
        assert.deepStrictEqual(wrong, [])
      })
    })
  )

  scenario("asks again by itself once its console is back", () =>
    Effect.gen(function* () {
      yield* endpoint({ id: "billing" })
      const first = yield* Scope.make()
      const console = yield* Scope.provide(startConsole({ hasPages: true }), first)
      const port = Number(new URL(console.url).port)
      const operator = yield* operatorPath()
      const started = yield* browser
      const watched = yield* Effect.promise(() => openPage(started, console.url))
      const { page } = watched
      yield* Effect.promise(async () => {
        await logIn(watched, console.url, operator)
        await page.goto(`${console.url}/ui/endpoints?tenant=acme`)
        await page.getByRole("link", { name: "acme/billing" }).waitFor()
      })
      yield* Scope.close(first, Exit.void)
      yield* Effect.promise(async () => {
        await page.getByRole("alert").getByText("does not answer").waitFor()
        // What it knew stays in sight.
        assert.strictEqual(await page.getByRole("link", { name: "acme/billing" }).count(), 1)
      })
      yield* endpoint({ id: "later" })
      yield* startConsole({ hasPages: true, port })
      yield* Effect.promise(async () => {
        await page.getByRole("link", { name: "acme/later" }).waitFor()
        await page.getByRole("alert").waitFor({ state: "detached" })

        // A log that does not answer is not said to be up to date.
        const log = /\/v1\/.*\/deliveries/
        const lag = { ms: 0 }
        await page.clock.install()
        await page.route(log, (route) =>
          route.fulfill({ json: { deliveries: [], searchedUntil: null, lag } })
        )
        await page.goto(`${console.url}/ui/deliveries?tenant=acme`)
        await page.getByText("the log is up to date").waitFor()
        await page.unroute(log)
        await page.route(log, (route) => route.abort())
        await page.clock.fastForward(10_000)
        await page.getByRole("alert").waitFor()
        assert.strictEqual(await page.getByText("up to date").count(), 0)
        await page.unroute(log)
        await page.clock.resume()

        // Of 100,000 endpoints that are still being counted none is said to be open, nor that none is.
        const detail = "the endpoints are still being counted: ask again in a few seconds"
        await page.route(/\/v1\/.*state=/, (route) =>
          route.fulfill({
            ...{ status: 503, headers: { "retry-after": "5" } },
            contentType: "application/problem+json",
            body: JSON.stringify({ ...{ type: "about:blank", title: "Busy" }, status: 503, detail })
          })
        )
        await page.goto(`${console.url}/ui/endpoints?tenant=acme&state=open`)
        await page.getByRole("alert").getByText(detail).waitFor()
        assert.strictEqual(await page.getByText("No endpoint is in this state now.").count(), 0)
        await page.unroute(/\/v1\/.*state=/)
        await page.getByText("No endpoint is in this state now.").waitFor()
        await page.getByRole("alert").waitFor({ state: "detached" })

        // What takes a console long is asked for less often.
        let asked = 0
        await page.route("**/v1/status", async (route) => {
          asked++
          await page.clock.fastForward(3_000)
          await route.continue()
        })
        await page.goto(`${console.url}/ui/system`)
        await page.getByRole("heading", { name: "Workers" }).waitFor()
        await page.clock.fastForward(10_000)
        // Whatever was asked for by then has gone before this.
        await page.evaluate("fetch('/healthz')")
        assert.strictEqual(asked, 1)
        // On a machine that others use, an answer takes longer than what passes here.
        for (let n = 0; asked < 2 && n < 40; n++) {
          await page.clock.fastForward(25_000)
          await page.evaluate("fetch('/healthz')")
        }
        assert.strictEqual(asked, 2)
        await page.unroute("**/v1/status")

        // An answer that has waited for the broker does not hold the page up for ten times as long.
        let waited = 0
        await page.route("**/v1/status", async (route) => {
          if (waited++ === 0) await page.clock.fastForward(15_000)
          await route.continue()
        })
        await page.goto(`${console.url}/ui/system`)
        await page.getByRole("heading", { name: "Workers" }).waitFor()
        await page.clock.fastForward(31_000)
        await page.evaluate("fetch('/healthz')")
        assert.strictEqual(waited, 2)
      })
    })
  )

  scenario(
    "says at once that there is no broker, and shows the status again once there is",
    (_place, server) =>
      Effect.gen(function* () {
        const console = yield* startConsole({ hasPages: true })
        const operator = yield* operatorPath()
        const started = yield* browser
        const watched = yield* Effect.promise(() => openPage(started, console.url))
        const { page } = watched
        yield* Effect.promise(async () => {
          await logIn(watched, console.url, operator)
          await page.goto(`${console.url}/ui/system`)
          await page.getByRole("heading", { name: "Workers" }).waitFor()
          await server.kill9()
          await page.getByRole("alert").getByText("There is no connection to the broker").waitFor()
          await server.restart()
          await page.getByRole("alert").waitFor({ state: "detached" })
          await page.getByRole("heading", { name: "Workers" }).waitFor()
        })
      })
  )

  scenario("shows nothing of an endpoint that has been removed meanwhile", () =>
    Effect.gen(function* () {
      yield* endpoint({ id: "billing" })
      const console = yield* startConsole({ hasPages: true })
      const operator = yield* operatorPath()
      const started = yield* browser
      const watched = yield* Effect.promise(() => openPage(started, console.url))
      const { page } = watched
      yield* Effect.promise(async () => {
        await logIn(watched, console.url, operator)
        await page.goto(`${console.url}/ui/endpoints/acme/billing`)
        await page.getByRole("button", { name: "Retry now" }).waitFor()
      })
      yield* removeEndpoint("acme", "billing")
      yield* Effect.promise(async () => {
        await page.getByRole("alert").getByText("There is no endpoint acme/billing").waitFor()
        assert.strictEqual(await page.getByRole("button", { name: "Retry now" }).count(), 0)
        assert.strictEqual(await page.getByText("enabled", { exact: true }).count(), 0)
      })
    })
  )
})
