import { assert, describe, vi } from "@effect/vitest"
import { Effect } from "effect"
import { browser, hasBrowser } from "../kit/browser.ts"
import { endpoint, history, publish, worker } from "../kit/engine.ts"
import { faults, logIn, openPage, operatorPath, pagesConsole } from "../kit/pages.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

vi.setConfig({ testTimeout: 180_000 })

const { scenario } = onServer()

describe.skipIf(!hasBrowser)("the pages of an operator, in a browser", () => {
  scenario("make and revoke tokens and links, audit, and set thresholds", (place) =>
    Effect.gen(function* () {
      const hook = yield* receiver({})
      yield* endpoint({ id: "billing", url: hook.url, types: ["paid"] })
      const facts = yield* history
      yield* worker()
      yield* publish("paid", "{}", { "Nats-Msg-Id": "acme.one" })
      yield* facts.count("delivered", 1)
      const console = yield* pagesConsole(place)
      const operator = yield* operatorPath()
      const started = yield* browser
      yield* Effect.promise(async () => {
        const watched = await openPage(started, console.url)
        const { page, wrong } = watched
        await logIn(watched, console.url, operator)
        const asks = (token: string) =>
          fetch(`${console.url}/v1/tenants/acme/endpoints`, {
            headers: { authorization: `Bearer ${token}` }
          }).then(({ status }) => status)

        await page.goto(`${console.url}/ui/tokens?tenant=acme`)
        await page.getByText("New token", { exact: true }).click()
        const form = page.locator("details", { hasText: "New token" })
        await form.getByRole("button", { name: "Make it" }).click()
        await form.locator("#scopes-says").getByRole("alert").waitFor()
        await form.getByLabel("endpoints:read").check()
        await form.locator('[id="name"]').fill("the shop")
        await page
          .getByText("petrel token create acme --scope endpoints:read --name 'the shop'")
          .waitFor()
        await form.getByRole("button", { name: "Make it" }).click()
        const token = await form.locator(".once code").innerText()
        assert.match(token, /^ptl_/)
        await page.getByRole("cell", { name: "the shop" }).waitFor()
        assert.strictEqual(await asks(token), 200)
        wrong.push(...(await faults(page)))
        await page
          .getByRole("row", { name: /the shop/ })
          .getByRole("button", { name: "Revoke" })
          .click()
        await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click()
        await page.getByRole("cell", { name: "the shop" }).waitFor({ state: "detached" })
        while ((await asks(token)) !== 401)
          await page.evaluate("new Promise(requestAnimationFrame)")

        await page.getByText("New portal link", { exact: true }).click()
        const links = page.locator("details", { hasText: "New portal link" })
        await links.locator('[name="endpoint"]').fill("billing")
        await page.getByText("petrel portal link acme/billing --for 1h").waitFor()
        await links.getByRole("button", { name: "Make it" }).click()
        const link = await links.locator(".once code").innerText()
        const portal = await openPage(started, console.url)
        await logIn(portal, console.url, link.slice(console.url.length))
        await portal.page.getByRole("heading", { name: "acme/billing" }).waitFor()

        await page.getByRole("link", { name: "Audit" }).click()
        await page.locator("#tenant").fill("nobody")
        await page.getByRole("button", { name: "Start an audit" }).click()
        await page.locator("#tenant-says").getByText("nobody is unknown").waitFor()
        await page.locator("#tenant").fill("acme")
        await page.getByText("petrel audit --tenant acme").waitFor()
        await page.getByRole("button", { name: "Start an audit" }).click()
        // A text is found in any case, and the form that starts an audit says "every event reached".
        await page.getByText(/Every event reached every endpoint that it was for/).waitFor()
        wrong.push(...(await faults(page)))
        // A result that is not clean says so, and leads to what it is about.
        const found = await (
          await page.request.get(`${console.url}/v1/audits`, {
            headers: { "sec-fetch-site": "same-origin" }
          })
        ).json()
        const job = found.jobs[0]
        const listed = [
          {
            ...{ kind: "missing", tenant: "acme", endpoint: "billing", event: "acme.one" },
            says: "it is nowhere"
          }
        ]
        await page.route("**/v1/audits/*", (route) =>
          route.fulfill({
            json: {
              ...job,
              result: { ...job.result, verdict: "problems", problems: { missing: 3 }, listed }
            }
          })
        )
        await page.reload()
        await page.getByText("3 problems, of which the first 1 are shown").waitFor()
        assert.strictEqual(await page.getByText(/Every event reached/).count(), 0)
        wrong.push(...(await faults(page, ["dark"])))
        await page.getByRole("link", { name: "acme.one" }).click()
        await page.unroute("**/v1/audits/*")
        await page.getByText("Attempt 1").waitFor()
        await page.goto(`${console.url}/ui/audit`)
        await page.getByRole("cell", { name: /clean/ }).waitFor()

        await page.goto(`${console.url}/ui/alerts?tenant=acme`)
        await page.locator("#successWarnPercent").fill("200")
        await page.getByRole("button", { name: "Set them" }).click()
        await page.locator("#successWarnPercent-says").getByRole("alert").waitFor()
        await page.locator("#successWarnPercent").fill("97")
        await page.getByRole("button", { name: "Set them" }).click()
        await page.getByText("They are set.").waitFor()
        wrong.push(...(await faults(page)))
        await page.reload()
        await page.locator("#successWarnPercent").waitFor()
        assert.strictEqual(await page.locator("#successWarnPercent").inputValue(), "97")
        await page.getByRole("button", { name: "Unset all" }).click()
        await page.getByRole("dialog").getByRole("button", { name: "Unset all" }).click()
        await page.getByText("nothing is set here").waitFor()
        await page.reload()
        assert.strictEqual(await page.locator("#successWarnPercent").inputValue(), "")
        assert.deepStrictEqual([...wrong, ...portal.wrong], [])
      })
    })
  )
})
