import { assert, describe, vi } from "@effect/vitest"
import { Effect } from "effect"
import { listedOperations } from "../../src/api/groups.ts"
import { browser, hasBrowser } from "../kit/browser.ts"
import { startConsole } from "../kit/console.ts"
import { endpoint } from "../kit/engine.ts"
import { logIn, openPage, operatorPath } from "../kit/pages.ts"
import { onServer } from "../kit/scenario.ts"

vi.setConfig({ testTimeout: 180_000 })

const { scenario } = onServer()

describe.skipIf(!hasBrowser)("what surrounds the pages of a console, in a browser", () => {
  scenario("keeps what is typed, leaves dialogs alone, and leads to pages that there are", () =>
    Effect.gen(function* () {
      yield* endpoint({ id: "billing" })
      const console = yield* startConsole({ hasPages: true })
      const operator = yield* operatorPath()
      const reader = yield* console.token({ scopes: ["endpoints:read"] })
      const publisher = yield* console.token({ scopes: ["events:publish"] })
      const started = yield* browser
      yield* Effect.promise(async () => {
        const watched = await openPage(started, console.url)
        const { page, wrong } = watched
        await logIn(watched, console.url, operator)

        // Without a worker nobody knows what is in flight, and the overview says nothing of it.
        const said = await page.locator(".verdict p").first().innerText()
        assert.match(said, /1 endpoint; 0 deliveries wait, 0 dead letters are open\./)

        // What is typed stays while suggestions come late.
        let release = () => undefined as unknown
        const held = new Promise((resolve) => {
          release = () => resolve(undefined)
        })
        const suggested = /\/v1\/tenants\?limit=200/
        await page.route(suggested, async (route) => {
          await held
          await route.continue()
        })
        await page.goto(`${console.url}/ui/endpoints`)
        const tenant = page.getByLabel("tenant")
        await tenant.focus()
        await page.keyboard.type("ac")
        release()
        await page.locator("#tenants option").first().waitFor({ state: "attached" })
        assert.strictEqual(await tenant.inputValue(), "ac")
        await page.keyboard.type("me")
        await page.keyboard.press("Enter")
        await page.waitForURL(/tenant=acme/)
        await page.getByRole("link", { name: "acme/billing" }).waitFor()
        await page.unroute(suggested)

        // Keys that leave a page leave no dialog.
        await tenant.blur()
        await page.keyboard.press("?")
        const dialog = page.getByRole("dialog")
        await dialog.waitFor()
        await page.keyboard.press("g")
        await page.keyboard.press("d")
        assert.strictEqual(new URL(page.url()).pathname, "/ui/endpoints")
        await page.keyboard.press("Escape")
        await dialog.waitFor({ state: "detached" })

        // The id of an event may look like the place of an endpoint.
        await page.route(/\/deliveries\?.*event=acme\.a%2Fb/, (route) =>
          route.fulfill({ json: { deliveries: [{ tenant: "acme", endpoint: "billing" }] } })
        )
        await page.keyboard.press("/")
        await page.keyboard.type("acme.a/b")
        await page.keyboard.press("Enter")
        await page.waitForURL(/event=acme\.a%2Fb/)

        for (const name of ["constructor", "toString", "__proto__"]) {
          await page.goto(`${console.url}/ui/${name}`)
          await page.getByRole("heading", { name: "There is no such page" }).waitFor()
        }
        assert.deepStrictEqual(wrong, [])

        // A token begins with what it may see.
        for (const [token, title] of [
          [reader, "Endpoints"],
          [publisher, "This token is for no page of the console"]
        ] as const) {
          const other = await openPage(started, console.url)
          await other.page.goto(`${console.url}/ui/login`)
          await other.page.getByLabel("Token").fill(token)
          await other.page.getByRole("button", { name: "Log in" }).click()
          await other.page.getByRole("heading", { name: title, exact: true }).waitFor()
          // Nor does an address show a form that it may not send.
          for (const name of [
            ...["endpoints/new", "endpoints/acme/billing/settings", "sources/new", "tokens"],
            ...["start/replay", "start/recovery", "start/retry", "audit"]
          ]) {
            await other.page.goto(`${console.url}/ui/${name}`)
            await other.page.getByRole("heading", { name: "There is no such page" }).waitFor()
          }
          assert.deepStrictEqual(other.wrong, [])
        }
      })
    })
  )

  scenario("asks and says of an endpoint what is so, whoever else changes it", () =>
    Effect.gen(function* () {
      yield* endpoint({ id: "billing" })
      const console = yield* startConsole({ hasPages: true })
      const operator = yield* operatorPath()
      const token = yield* console.token()
      const elsewhere = (verb: string) =>
        Effect.map(
          console.ask(`/v1/tenants/acme/endpoints/billing/${verb}`, {
            ...{ method: "POST", token, body: {} }
          }),
          ({ status, text }) => assert.strictEqual(status, 200, text)
        )
      const started = yield* browser
      const watched = yield* Effect.promise(() => openPage(started, console.url))
      const { page, wrong } = watched
      const button = (name: string) => page.locator("main").getByRole("button", { name })
      const dialog = page.getByRole("dialog")
      yield* Effect.promise(async () => {
        await logIn(watched, console.url, operator)
        await page.goto(`${console.url}/ui/endpoints/acme/billing`)
        await button("Pause").click()
        await dialog.waitFor()
      })
      yield* elsewhere("pause")
      yield* Effect.promise(() => button("Resume").waitFor())
      yield* elsewhere("resume")
      yield* Effect.promise(async () => {
        await button("Pause").waitFor()
        // What was asked before somebody else paused it is not asked again.
        assert.strictEqual(await dialog.count(), 0)
        await button("Pause").click()
        await dialog.getByRole("button", { name: "Pause" }).click()
        await page.getByText("it is paused").waitFor()
        // By keys one goes on where one was.
        await page.locator("button:focus", { hasText: "Resume" }).waitFor()
      })
      yield* elsewhere("resume")
      yield* Effect.promise(async () => {
        await button("Pause").waitFor()
        assert.strictEqual(await page.getByText("it is paused").count(), 0)
        // Its state is called as the command line calls it: "closed" is said of its circuit.
        await page.locator(".title .chip", { hasText: "enabled" }).waitFor()
        // Nothing waits, and nothing is said of what waits.
        await button("Disable").click()
        assert.strictEqual(
          await dialog.locator("p").innerText(),
          "Disable acme/billing? It gets no events."
        )
        await dialog.getByRole("textbox").fill("moved")
        await dialog.getByRole("button", { name: "Disable" }).click()
        const note = page.locator(".note", { hasText: /^■\s*disabled .* by .*: moved$/i })
        await note.waitFor()
        assert.deepStrictEqual(wrong, [])
      })
    })
  )

  scenario(
    "have the API's document beside them, with all operations and this console's address",
    () =>
      Effect.gen(function* () {
        const publicUrl = "https://hooks.example"
        const console = yield* startConsole({ publicUrl })
        const started = yield* browser
        yield* Effect.promise(async () => {
          const { page, wrong } = await openPage(started, console.url)
          await page.goto(`${console.url}/docs`)
          const shown = page.locator(".opblock-summary-path")
          await shown.last().waitFor()
          assert.strictEqual(await shown.count(), listedOperations.length)
          await page.getByRole("option", { name: `${publicUrl} - This console` }).waitFor({
            state: "attached"
          })
          assert.deepStrictEqual(wrong, [])
        })
      })
  )
})
