import { assert, describe, vi } from "@effect/vitest"
import { Effect } from "effect"
import { browser, hasBrowser } from "../kit/browser.ts"
import { startConsole } from "../kit/console.ts"
import { endpoint } from "../kit/engine.ts"
import { faults, openPage, operatorPath } from "../kit/pages.ts"
import { onServer } from "../kit/scenario.ts"

vi.setConfig({ testTimeout: 180_000 })

const { scenario } = onServer()

const isSession = ({ pathname }: URL) => pathname === "/session"

const problem = (status: number, detail: string) => ({
  ...{ status, contentType: "application/problem+json" },
  body: JSON.stringify({ type: "about:blank", title: "Refused", status, detail })
})

describe.skipIf(!hasBrowser)("a session of the console, in a browser", () => {
  scenario("begins, goes on and ends as the console says, and not as it fails to", () =>
    Effect.gen(function* () {
      yield* endpoint({ id: "billing" })
      const console = yield* startConsole({ hasPages: true })
      const operator = yield* operatorPath()
      const started = yield* browser
      const watched = yield* Effect.promise(() => openPage(started, console.url))
      const { page, wrong } = watched
      const heading = (name: string) => page.getByRole("heading", { name, exact: true })
      yield* Effect.promise(async () => {
        // A console that does not answer does not say that nobody is logged in.
        const logIn = page.getByRole("button", { name: "Log in" })
        await page.route(isSession, (route) => route.fulfill(problem(503, "the broker is away")))
        await page.goto(`${console.url}/ui/endpoints?tenant=acme`)
        await page.getByRole("alert").getByText("the broker is away").waitFor()
        assert.strictEqual(await logIn.count(), 0)
        wrong.push(...(await faults(page, ["light"])))
        await page.unroute(isSession)
        await page.route(isSession, (route) => route.abort())
        await page.reload()
        await page.getByRole("alert").getByText("the console does not answer").waitFor()
        await page.unroute(isSession)
        // It asks again by itself.
        await logIn.waitFor()

        // A link that is opened where the console asks for one is used, and again where nobody answered.
        await page.goto(`${console.url}/ui/login`)
        await logIn.waitFor()
        await page.route(isSession, (route) => route.abort())
        await page.goto(`${console.url}${operator}`)
        await page.getByRole("alert").getByText("the console does not answer").waitFor()
        assert.strictEqual(page.url(), `${console.url}/ui/login`)
        wrong.push(...(await faults(page, ["light"])))
        await page.unroute(isSession)
        await page.getByRole("button", { name: "Try again with the link" }).click()
        await heading("Overview").waitFor()

        // Who cannot be logged out is told so.
        await page.route(isSession, (route) => route.abort())
        await page.getByRole("button", { name: "Log out" }).click()
        await page.getByText("Still logged in: the console does not answer").waitFor()
        await page.unroute(isSession)

        // The live page shows one tenant's failures, and ends with the session.
        const failed = JSON.stringify({
          ...{ seq: 1, kind: "attempt-failed", at: "2026-03-04T10:30:00.000Z" },
          ...{ tenant: "acme", endpoint: "billing", event: "acme.one" }
        })
        await page.route(/\/v1\/.*\/live/, (route) =>
          route.fulfill({
            contentType: "text/event-stream",
            body: route.request().url().includes("/acme/")
              ? `id: 1\nevent: failure\ndata: ${failed}\n\n`
              : ""
          })
        )
        await page.goto(`${console.url}/ui/live?tenant=acme`)
        await page.getByRole("link", { name: "acme.one" }).first().waitFor()
        await page.getByLabel("tenant").fill("beta")
        await page.getByLabel("tenant").press("Enter")
        await page.waitForURL(/tenant=beta/)
        await page.getByText("What fails from now on").waitFor()
        await page.evaluate("fetch('/session', { method: 'DELETE' })")
        await page.unroute(/\/v1\/.*\/live/)
        await logIn.waitFor()
        // Who did not log out is told why they are asked to log in.
        await page.getByRole("alert").getByText("the session has ended").waitFor()
        assert.deepStrictEqual(wrong, [])
      })
    })
  )
})
