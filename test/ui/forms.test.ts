import { assert, describe, vi } from "@effect/vitest"
import { Effect } from "effect"
import type { Page } from "playwright-core"
import { browser, hasBrowser } from "../kit/browser.ts"
import { endpoint, nth } from "../kit/engine.ts"
import { logIn, openPage, operatorPath, pagesConsole } from "../kit/pages.ts"
import { onServer } from "../kit/scenario.ts"

vi.setConfig({ testTimeout: 180_000 })

const { scenario } = onServer()

/** A request that the session's cookie is enough for. */
const sameOrigin = { headers: { "sec-fetch-site": "same-origin" } }

interface Listed {
  readonly id: string
  readonly name?: string
}

const field = (page: Page, path: string) => page.locator(`[id="${path}"]`)

/** Chooses whose figures the pages show, in their header. */
const chooseTenant = async (page: Page, tenant: string) => {
  // At once: while it is focused, a suggestion that comes in takes back what is typed.
  await page.locator("header input.short").evaluate((input, text) => {
    Object.assign(input, { value: text })
    input.dispatchEvent(new Event("change", { bubbles: true }))
  }, tenant)
  await page.waitForURL((now) => (now.searchParams.get("tenant") ?? "") === tenant)
}

describe.skipIf(!hasBrowser)("forms, in a browser", () => {
  scenario("do what they show, of whom they show it, and once", (place) =>
    Effect.gen(function* () {
      yield* endpoint({ id: "billing" })
      const console = yield* pagesConsole(place)
      const operator = yield* operatorPath()
      yield* console.token({ tenant: "acme", name: "the old one" })
      const started = yield* browser
      yield* Effect.promise(async () => {
        const watched = await openPage(started, console.url)
        const { page, wrong } = watched
        await logIn(watched, console.url, operator)

        // A form is about the tenant of the header, also once another one is chosen there.
        await page.goto(`${console.url}/ui/endpoints/new?tenant=acme`)
        await field(page, "id").fill("crm")
        await page.getByText("petrel endpoint add acme/crm").waitFor()
        await chooseTenant(page, "beta")
        await page.getByText("petrel endpoint add beta/crm").waitFor()
        await chooseTenant(page, "")
        await field(page, "tenant").fill("gamma")
        await page.getByText("petrel endpoint add gamma/crm").waitFor()
        await chooseTenant(page, "acme")
        await page.getByText("petrel endpoint add acme/crm").waitFor()
        assert.strictEqual(await field(page, "tenant").count(), 0)

        // A dialog is about the token whose row was clicked, whatever is made meanwhile.
        const listed = async () => {
          const answer = await page.request.get(`${console.url}/v1/tenants/*/tokens`, sameOrigin)
          const { tokens } = (await answer.json()) as { tokens: Array<Listed> }
          return tokens
        }
        await page.goto(`${console.url}/ui/tokens?tenant=acme`)
        const row = page.getByRole("row", { name: /the old one/ })
        await row.getByRole("button", { name: "Revoke" }).click()
        const dialog = page.getByRole("dialog")
        await dialog.getByText(/\(the old one\)/).waitFor()
        const made = await page.request.post(`${console.url}/v1/tenants/acme/tokens`, {
          ...sameOrigin,
          data: { scopes: ["endpoints:read"], name: "the new one" }
        })
        assert.strictEqual(made.status(), 201)
        await page.getByRole("cell", { name: "the new one" }).waitFor({ state: "attached" })
        await dialog.getByText(/\(the old one\)/).waitFor()
        await dialog.getByRole("button", { name: "Revoke" }).click()
        await page.getByRole("cell", { name: "the old one" }).waitFor({ state: "detached" })
        await page.getByRole("cell", { name: "the new one" }).waitFor()

        // Two clicks, as fast as may be, make one; its secret is there to be kept.
        for (const [title, name] of [
          ["New token", "clicked twice"],
          ["New portal link", "linked twice"]
        ] as const) {
          await page.getByText(title, { exact: true }).click()
          const form = page.locator("details", { hasText: title })
          await form.locator('[name="name"]').fill(name)
          if (title === "New token") await form.getByLabel("endpoints:read").check()
          await form.getByRole("button", { name: "Make it" }).dblclick({ delay: 150 })
          await form.locator(".once code").waitFor()
          await page.getByRole("cell", { name }).waitFor()
          assert.lengthOf(
            (await listed()).filter((one) => one.name === name),
            1,
            title
          )
          await form.getByRole("button", { name: "Make another" }).click()
          await form.getByRole("button", { name: "Make it" }).waitFor()
          await page.getByText(title, { exact: true }).click()
        }

        // Who clicks twice to see what a job would do starts none.
        const asked: Array<string> = []
        page.on("request", (request) => {
          if (/\/replays$/.test(request.url())) asked.push(request.postData() ?? "")
        })
        await page.goto(`${console.url}/ui/start/replay?tenant=acme&endpoint=billing`)
        const box = await page.getByRole("button", { name: "What would be sent?" }).boundingBox()
        const [x, y] = [(box?.x ?? 0) + 20, (box?.y ?? 0) + 10]
        await page.mouse.click(x, y)
        await page.getByRole("button", { name: "Start it" }).waitFor()
        await page.mouse.down({ clickCount: 2 })
        await page.mouse.up({ clickCount: 2 })
        await page.getByRole("button", { name: "Start it" }).waitFor()
        // Whatever was asked for by then has gone before this.
        await page.evaluate("fetch('/healthz')")
        assert.isTrue(
          asked.every((body) => JSON.parse(body).dryRun === true),
          asked.join()
        )

        assert.deepStrictEqual(wrong, [])
      })
    })
  )

  scenario("lose nothing that somebody has typed or set", (place) =>
    Effect.gen(function* () {
      yield* endpoint({ id: "billing", circuit: {} })
      const console = yield* pagesConsole(place)
      const operators = yield* Effect.all([operatorPath("Ada"), operatorPath("Bob")])
      const started = yield* browser
      yield* Effect.promise(async () => {
        const people = await Promise.all(
          operators.map(async (path) => {
            const one = await openPage(started, console.url)
            await logIn(one, console.url, path)
            return one
          })
        )
        const [{ page, wrong }, { page: other }] = [nth(people, 0), nth(people, 1)]
        const both = (path: string) =>
          Promise.all([page, other].map((one) => one.goto(`${console.url}${path}`)))

        // Thresholds that two people set at once are those of both.
        await both("/ui/alerts?tenant=acme")
        await field(other, "retriesPercent").waitFor()
        await field(page, "successWarnPercent").fill("97")
        await page.getByRole("button", { name: "Set them" }).click()
        await page.getByText("They are set.").waitFor()
        await field(other, "retriesPercent").fill("7")
        await other.getByRole("button", { name: "Set them" }).click()
        await other.getByText("They are set.").waitFor()
        await other.reload()
        await field(other, "retriesPercent").waitFor()
        assert.strictEqual(await field(other, "successWarnPercent").inputValue(), "97")
        assert.strictEqual(await field(other, "retriesPercent").inputValue(), "7")
        // Of one field, the second one sees what the first has set.
        await field(page, "retriesPercent").fill("8")
        await page.getByRole("button", { name: "Set them" }).click()
        await page.getByText("Not saved: it was changed since you opened it").waitFor()
        await page.locator("#retriesPercent-says").getByText("was set to 7 meanwhile").waitFor()
        await page.getByRole("button", { name: "Set them" }).click()
        await page.getByText("They are set.").waitFor()

        // So with the settings of a tenant, which say what was saved, and keep the focus.
        await both("/ui/settings?tenant=acme")
        await field(other, "hostCap").waitFor()
        await field(page, "hostCap").fill("20")
        await field(page, "hostCap").press("Enter")
        await page.getByText("Saved: hostCap").waitFor()
        assert.isTrue(await field(page, "hostCap").evaluate((one) => one.matches(":focus")))
        await field(other, "hostCap").fill("30")
        const save = other.getByRole("button", { name: "Save" })
        await save.click()
        await other.locator("#hostCap-says").getByText("was set to 20 meanwhile").waitFor()
        await save.click()
        await other.getByText("Saved: hostCap").waitFor()
        assert.isTrue(await save.evaluate((one) => one.matches(":focus")))

        // A group does not close under the cursor.
        await page.goto(`${console.url}/ui/endpoints/acme/billing`)
        await page.getByRole("link", { name: "Change" }).click()
        await page.getByText("More settings").click()
        await page.getByText("circuit", { exact: true }).click()
        await field(page, "circuit.failures").focus()
        await page.keyboard.press("5")
        await page.locator("form button.main:enabled").waitFor()
        await page.keyboard.press("Backspace")
        await page.locator("form button.main:disabled").waitFor()
        assert.isTrue(await field(page, "circuit.failures").isVisible())

        // What was typed is not left behind without a question, by a link or by the browser's own keys.
        await field(page, "description").fill("typed")
        const questions: Array<string> = []
        let answer = false
        page.on("dialog", (dialog) => {
          questions.push(dialog.message())
          void (answer ? dialog.accept() : dialog.dismiss())
        })
        await page.getByRole("link", { name: "Endpoints" }).click()
        await page.evaluate("history.back()")
        while (questions.length < 2) await page.evaluate("new Promise(requestAnimationFrame)")
        assert.include(page.url(), "/acme/billing/settings")
        assert.strictEqual(await field(page, "description").inputValue(), "typed")
        // What the console did not answer is said not to be repeated.
        await page.route("**/v1/**", (route) => route.abort())
        await page.getByRole("button", { name: "Save" }).click()
        await page.getByText("nothing is known to be done. Try again.").waitFor()
        await page.unroute("**/v1/**")
        answer = true
        await page.getByRole("link", { name: "Endpoints" }).click()
        await page.getByRole("heading", { name: "Endpoints" }).waitFor()
        assert.lengthOf(questions, 3)
        await page.getByRole("link", { name: "Jobs" }).click()
        await page.getByRole("heading", { name: "Jobs" }).waitFor()
        assert.lengthOf(questions, 3)
        const leaveAfter = async (
          [name, path, text]: readonly [name: string, path: string, text: string],
          leave: () => Promise<void>
        ) => {
          answer = false
          const before = questions.length
          await page.goto(`${console.url}/ui/${name}?tenant=acme`)
          await field(page, path).fill(text)
          await leave()
          assert.lengthOf(questions, before + 1, name)
          assert.strictEqual(await field(page, path).inputValue(), text)
          assert.strictEqual(await tenant.inputValue(), "acme")
          answer = true
          await leave()
        }
        const tenant = page.getByLabel("tenant", { exact: true })
        const choose = async (name: string) => {
          await tenant.fill(name)
          await tenant.press("Enter")
        }
        const toSave = [
          ["settings", "hostCap", "40"],
          ["alerts", "deadLetters", "4"]
        ] as const
        // So with what is to be added, and with all other forms that save something.
        for (const typed of [
          ["endpoints/new", "url", "https://example.com/hooks"],
          ["sources/new", "webhookId", "hook-1"],
          ...toSave
        ] as const) {
          await leaveAfter(typed, () => page.getByRole("link", { name: "Jobs" }).click())
          await page.getByRole("heading", { name: "Jobs" }).waitFor()
        }
        // So where another tenant is chosen, unless the form stays as it is.
        for (const typed of toSave) {
          await leaveAfter(typed, () => choose("beta"))
          await page.waitForURL(/tenant=beta/)
        }
        const asked = questions.length
        await page.goto(`${console.url}/ui/endpoints/new?tenant=acme`)
        await field(page, "url").fill("https://example.com/hooks")
        await choose("beta")
        await page.waitForURL(/tenant=beta/)
        assert.strictEqual(await field(page, "url").inputValue(), "https://example.com/hooks")
        assert.lengthOf(questions, asked)
        // What else is made asks, too; of two forms, for as long as one of them has something.
        await page.goto(`${console.url}/ui/tokens?tenant=acme`)
        assert.lengthOf(questions, asked + 1)
        for (const title of ["New token", "New portal link"]) await page.getByText(title).click()
        const names = page.getByLabel("name", { exact: true })
        await names.nth(0).fill("of a program")
        await page.getByText("name", { exact: true }).nth(1).click()
        assert.isTrue(await names.nth(1).evaluate((one) => one.matches(":focus")))
        await names.nth(1).fill("Ada")
        await names.nth(1).fill("")
        await page.getByRole("link", { name: "Jobs" }).click()
        await page.getByRole("heading", { name: "Jobs" }).waitFor()
        assert.lengthOf(questions, asked + 2)

        // A session that ends leaves what was typed where it is.
        await page.goto(`${console.url}/ui/alerts?tenant=acme`)
        await field(page, "deadLetters").fill("5")
        const refused = page.waitForResponse((one) => one.status() === 401)
        await page.route(/\/v1\/tenants\/acme\/alerts/, (route) =>
          route.fulfill({
            ...{ status: 401, contentType: "application/problem+json" },
            body: JSON.stringify({
              ...{ type: "urn:petrel:problem:unauthorized", title: "No", status: 401 },
              detail: "it has ended"
            })
          })
        )
        await refused
        await page.getByText("The session has ended: log in again.").waitFor()
        assert.strictEqual(await field(page, "deadLetters").inputValue(), "5")
        await page.unroute(/\/v1\/tenants\/acme\/alerts/)

        // Once it is added, nothing is asked.
        await page.goto(`${console.url}/ui/endpoints/new?tenant=acme`)
        const before = questions.length
        await field(page, "url").fill("https://example.com/hooks")
        await page.getByRole("button", { name: "Add it" }).click()
        await page.getByRole("link", { name: "To the endpoint" }).click()
        await page.getByText("Out of service").waitFor()
        await page.goto(`${console.url}/ui/sources/new?tenant=acme`)
        await field(page, "provider").selectOption("github")
        await field(page, "secrets").fill("secret-of-the-hub")
        await page.getByRole("button", { name: "Add it" }).click()
        await page.getByRole("heading", { name: "acme/github" }).waitFor()
        assert.lengthOf(questions, before)

        assert.deepStrictEqual(wrong, [])
      })
    })
  )
})
