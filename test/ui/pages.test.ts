import { readdir, readFile } from "node:fs/promises"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { assert, describe, it, vi } from "@effect/vitest"
import { Effect } from "effect"
import { pageFiles } from "../../build/ui.ts"
import { browser, hasBrowser } from "../kit/browser.ts"
import { endpoint, history, publish, worker } from "../kit/engine.ts"
import { faults, openPage, operatorPath, pagesConsole, portalPath } from "../kit/pages.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

vi.setConfig({ testTimeout: 180_000 })

const { scenario } = onServer()

describe("the pages' script and style", () => {
  it("are small", async () => {
    const files = await pageFiles()
    const bytes = files
      .filter(({ name }) => name.endsWith(".js"))
      .reduce((sum, { text }) => sum + gzipSync(text).length, 0)
    assert.isAbove(bytes, 5_000)
    assert.isAtMost(bytes, 60_000)
  })
})

describe("the operations of the pages' client", () => {
  it("are all that a page asks for", async () => {
    const script = (await pageFiles()).find(({ name }) => name.endsWith(".js"))?.text ?? ""
    const root = join(import.meta.dirname, "../../ui")
    const files = (await readdir(root, { recursive: true })).filter((name) => /\.tsx?$/.test(name))
    const texts = await Promise.all(files.map((name) => readFile(join(root, name), "utf8")))
    const asked = texts.flatMap((text) =>
      Array.from(
        text.matchAll(/petrel\s*\.(\w+)\s*\.(\w+)\(/g),
        ([, group, one]) => `${group}.${one}`
      )
    )
    assert.isAbove(new Set(asked).size, 60)
    assert.deepStrictEqual(
      asked.filter((name) => !script.includes(`"${name}"`) && !script.includes(`\`${name}\``)),
      []
    )
    assert.notInclude(script, "deliveries.totals")
  })
})

describe.skipIf(!hasBrowser)("the pages of a console, in a browser", () => {
  scenario("show what became of events, and do what their buttons say", (place) =>
    Effect.gen(function* () {
      const hook = yield* receiver({ answer: { status: 400 } })
      yield* endpoint({
        id: "billing",
        url: hook.url,
        types: ["paid"],
        circuit: { permanentFailures: 1_000 }
      })
      const facts = yield* history
      yield* worker()
      yield* publish("paid", '{"invoice":42}', { "Nats-Msg-Id": "acme.one" })
      yield* publish("paid", '{"invoice":43}', { "Nats-Msg-Id": "acme.two" })
      yield* facts.count("dead-lettered", 2)
      const console = yield* pagesConsole(place)
      const operator = yield* operatorPath()
      const portal = yield* portalPath("acme", { endpoint: "billing", brand: { name: "ACME" } })
      const started = yield* browser
      yield* Effect.promise(async () => {
        const { page, wrong } = await openPage(started, console.url)
        await page.goto(`${console.url}${operator}`)
        await page.getByRole("heading", { name: "Overview" }).waitFor()
        // The secret is gone from the address, and so from the browser's history.
        assert.strictEqual(page.url(), `${console.url}/ui/`)
        wrong.push(...(await faults(page)))
        await page.getByText("No problem is known.").waitFor()
        // What was well may not be so any more once the console no longer answers.
        await page.route("**/v1/status", (route) => route.abort())
        await page.getByText("This is what was last known.").waitFor()
        assert.strictEqual(await page.getByText("No problem is known.").count(), 0)
        await page.unroute("**/v1/status")
        await page.getByText("No problem is known.").waitFor()
        const alert = {
          ...{ id: "1", name: "success-low", about: "tenant", level: "warn", threshold: 95 },
          ...{ unit: "percent", windowMs: 1, raisedAt: new Date().toISOString(), tenant: "acme" }
        }
        await page.route("**/alerts?*", (route) =>
          route.fulfill({ json: { alerts: [alert], total: 1_204 } })
        )
        await page.reload()
        await page.getByText("1,204 alerts are raised.").waitFor()
        // Those that are not shown are on a page of their own.
        await page.getByRole("link", { name: "All 1,204 alerts" }).waitFor()
        assert.strictEqual(await page.getByText("No problem is known.").count(), 0)
        await page.unroute("**/alerts?*")
        await page.route("**/alerts?*", (route) =>
          route.fulfill({ json: { alerts: [], total: 0 } })
        )
        // Nothing is said to be well while it is not known how the endpoints fare.
        const answered = page.waitForResponse("**/v1/status")
        await page.reload()
        const status = await (await answered).json()
        await page.route("**/v1/status", (route) =>
          route.fulfill({ json: { ...status, endpoints: null } })
        )
        await page.reload()
        await page
          .getByText("No problem is known; the endpoints are still being counted.")
          .waitFor()
        assert.strictEqual(await page.getByText("No problem is known.").count(), 0)
        assert.strictEqual(await page.getByRole("link", { name: "1 endpoint" }).count(), 0)
        await page.unroute("**/v1/status")
        // Nor where an audit has found something.
        const audit = {
          ...{ id: "job-1", tenant: "*", kind: "audit", state: "done", by: "test", takeovers: 0 },
          ...{ asked: { tenant: "acme" }, createdAt: status.at, endedAt: status.at }
        }
        for (const [verdict, says] of [
          ["problems", "There is one problem."],
          ["clean", "No problem is known."]
        ] as const) {
          await page.route(/\/v1\/audits/, (route) =>
            route.fulfill({ json: { jobs: [{ ...audit, result: { verdict } }] } })
          )
          await page.reload()
          await page.getByText(says).waitFor()
          await page.getByRole("link", { name: verdict }).waitFor()
          // An audit of one tenant vouches for no other.
          await page.getByText(/of acme, /).waitFor()
          await page.unroute(/\/v1\/audits/)
        }
        await page.reload()
        await page.getByRole("link", { name: "1 endpoint", exact: true }).waitFor()
        await page.getByText("Last audit: none yet").waitFor()
        assert.strictEqual(await page.getByText("no endpoint yet").count(), 0)
        await page.goto(`${console.url}/ui/?tenant=beta`)
        await page.getByRole("heading", { name: "beta has no endpoint yet" }).waitFor()
        await page.getByText("petrel endpoint add beta/billing").waitFor()
        // The alerts of one tenant say nothing of those of others.
        await page.getByText("No problem of this tenant is known.").waitFor()
        wrong.push(...(await faults(page)))
        await page.goto(`${console.url}/ui/`)
        await page.getByText("No problem is known.").waitFor()
        await page.unroute("**/alerts?*")

        await page.keyboard.press("g")
        await page.keyboard.press("d")
        await page.getByRole("link", { name: "acme.one" }).waitFor()
        await page.keyboard.press("j")
        await page.locator("tbody tr:focus-within").waitFor()
        wrong.push(...(await faults(page)))
        await page.keyboard.press("Enter")
        await page.getByText("Attempt 1").waitFor()
        await page.getByRole("button", { name: "Show", exact: true }).click()
        await page.getByText('"invoice": 4').waitFor()
        wrong.push(...(await faults(page)))
        await page.goBack()
        await page.getByLabel("state").selectOption("delivered")
        await page.getByText("No delivery matches").waitFor()
        assert.include(page.url(), "state=delivered")

        // The API does not answer for a while, and then does again.
        await page.route("**/v1/**", (route) => route.fulfill({ status: 503, body: "{}" }))
        await page.goto(`${console.url}/ui/endpoints/acme/billing`)
        await page.getByRole("alert").first().waitFor()
        await page.unroute("**/v1/**")
        await page.getByRole("heading", { name: "acme/billing" }).waitFor()
        // Both were permanent.
        await page.locator("dt:text('failures in a row') + dd").getByText("2").waitFor()
        await page.getByRole("button", { name: "Pause" }).click()
        await page.getByText("petrel endpoint pause acme/billing").first().waitFor()
        await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click()
        await page.getByText("it is paused").waitFor()
        await page.getByRole("button", { name: "Resume" }).click()
        await page.getByText("it goes on").waitFor()
        wrong.push(...(await faults(page)))

        hook.answer({ status: 200 })
        await page.goto(`${console.url}/ui/dead-letters?tenant=acme`)
        await page.getByRole("link", { name: "acme.two" }).waitFor()
        await page.getByRole("button", { name: "What would be sent again?" }).click()
        await page.getByText("2 of 2 dead letters would be sent again").waitFor()
        await page.getByRole("button", { name: "Send 2 again" }).click()
        await page.getByRole("status").getByText("2 of 2 are done").waitFor()
        // Whoever comes back to the address sees how far it has come.
        await page.reload()
        await page.getByRole("status").getByText("2 of 2 are done").waitFor()
        wrong.push(...(await faults(page)))
        // Nothing is said of all where only some are looked at.
        await page.goto(`${console.url}/ui/dead-letters?tenant=acme&type=unpaid`)
        await page.getByText("No dead letter matches these filters.").waitFor()
        await page.goto(`${console.url}/ui/dead-letters?tenant=acme`)
        await page.getByText("There are none: whatever ended was").waitFor()
        const failed = {
          ...{ seq: 1, kind: "attempt-failed", at: new Date().toISOString() },
          ...{ tenant: "acme", endpoint: "billing", event: "acme.one" }
        }
        await page.route(/\/v1\/.*\/live/, (route) =>
          route.fulfill({
            contentType: "text/event-stream",
            body: `id: 1\nevent: failure\ndata: ${JSON.stringify(failed)}\n\n`
          })
        )
        await page.goto(`${console.url}/ui/live`)
        await page.getByRole("link", { name: "acme.one" }).first().waitFor()
        wrong.push(...(await faults(page)))
        // An answer that a page cannot show spoils that page alone.
        await page.route(/\/v1\/.*\/alerts\?/, (route) =>
          route.fulfill({ json: { alerts: [null] } })
        )
        await page.goto(`${console.url}/ui/alerts`)
        await page.getByRole("heading", { name: "This page cannot be shown" }).waitFor()
        await page.unroute(/\/v1\/.*\/alerts\?/)
        await page.getByRole("link", { name: "Endpoints" }).click()
        await page.getByRole("heading", { name: "Endpoints" }).waitFor()
        for (const name of ["alerts", "system", "endpoints"]) {
          await page.goto(`${console.url}/ui/${name}`)
          await page.getByRole("heading", { level: 1 }).waitFor()
          wrong.push(...(await faults(page)))
        }
        await page.getByRole("button", { name: "Log out" }).click()
        await page.getByRole("button", { name: "Log in" }).waitFor()

        const other = await (await started.newContext()).newPage()
        await other.goto(`${console.url}${portal}`)
        await other.getByRole("heading", { name: "acme/billing" }).waitFor()
        await other.getByText("ACME", { exact: true }).waitFor()
        assert.strictEqual(await other.getByRole("link", { name: "System" }).count(), 0)
        assert.deepStrictEqual(wrong, [])
      })
      yield* facts.count("delivered", 2)
    })
  )
})
