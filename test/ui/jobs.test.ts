import { assert, describe, vi } from "@effect/vitest"
import { Effect } from "effect"
import { browser, hasBrowser } from "../kit/browser.ts"
import { endpoint, history, publish, worker } from "../kit/engine.ts"
import { faults, logIn, openPage, operatorPath, pagesConsole, portalPath } from "../kit/pages.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

vi.setConfig({ testTimeout: 180_000 })

const { scenario } = onServer()

describe.skipIf(!hasBrowser)("sending again in bulk, in a browser", () => {
  scenario(
    "recovers and replays, says first what it would send, and asks no more once it is over",
    (place) =>
      Effect.gen(function* () {
        const hook = yield* receiver({ answer: { status: 400 } })
        for (const id of ["billing", "crm"])
          yield* endpoint({
            ...{ id, url: `${hook.url}/${id}`, types: ["paid"] },
            circuit: { permanentFailures: 1_000 }
          })
        const facts = yield* history
        yield* worker()
        for (let n = 0; n < 4; n++)
          yield* publish("paid", `{"n":${n}}`, { "Nats-Msg-Id": `acme.${n}` })
        yield* facts.count("dead-lettered", 8)
        const console = yield* pagesConsole(place)
        const operator = yield* operatorPath("Ada")
        const owner = yield* portalPath("acme", { endpoint: "crm" })
        const started = yield* browser
        hook.answer({ status: 200 })
        const before = hook.requests.length
        yield* Effect.promise(async () => {
          const watched = await openPage(started, console.url)
          const { page, wrong } = watched
          await page.clock.install()
          await logIn(watched, console.url, operator)

          // From the endpoint's page, by keys only.
          await page.goto(`${console.url}/ui/endpoints/acme/billing`)
          await page.getByText("Retry schedule").waitFor()
          wrong.push(...(await faults(page, ["dark"])))
          await page.getByRole("link", { name: "Recover" }).focus()
          await page.keyboard.press("Enter")
          await page.getByRole("heading", { name: "Recover an endpoint" }).waitFor()
          const plan = page.getByRole("button", { name: "What would be sent?" })
          await plan.click()
          // The console says what is missing, at its field.
          await page.locator("#since-says").getByRole("alert").waitFor()
          await page.locator("#since").fill("2026-01-01T00:00:00")
          await page.locator("#since").press("Tab")
          await page.getByText(/petrel endpoint recover acme\/billing --since 2/).waitFor()
          await plan.click()
          await page.getByText(/^of the dead letters 4 to be sent again/).waitFor()
          assert.strictEqual(hook.requests.length, before)
          wrong.push(...(await faults(page, ["light"])))
          await page.getByRole("button", { name: "Start it" }).click()
          await page.getByText("4 of 4 are done").waitFor()
          await page.getByText("0 tried at once; 4 sent again").waitFor()

          // What is over is not asked for again.
          const asked: Array<string> = []
          page.on("request", (request) => {
            if (request.url().includes("/recoveries/")) asked.push(request.url())
          })
          await page.clock.fastForward(120_000)
          await page.getByRole("link", { name: "Jobs", exact: true }).click()
          await page.getByRole("link", { name: "Recoveries" }).click()
          await page.getByRole("cell", { name: "4 of 4" }).waitFor()
          assert.deepStrictEqual(asked, [])
          wrong.push(...(await faults(page, ["light"])))
          // A list is walked by keys, and a row is opened.
          await page.keyboard.press("j")
          await page.keyboard.press("Enter")
          await page.getByText("What was asked for").waitFor()
          assert.include(page.url(), "/ui/jobs/acme/recovery/job-")

          // A replay of what has arrived sends nothing, and offers nothing to start.
          await page.goto(`${console.url}/ui/start/replay?tenant=acme&endpoint=billing`)
          await page.getByLabel("only missing").check()
          await page.getByText("petrel replay --to acme/billing --only-missing").waitFor()
          await plan.click()
          await page.getByText("0 to be sent; 4 delivered already").waitFor()
          assert.isTrue(await page.getByRole("button", { name: "Start it" }).isDisabled())
          // With other conditions it is to be asked for anew.
          await page.getByLabel("only missing").uncheck()
          await plan.click()
          await page.getByText("4 to be sent").waitFor()
          await page.getByText("paid", { exact: true }).waitFor()

          // The owner of one endpoint recovers what is theirs.
          const portal = await openPage(started, console.url)
          await logIn(portal, console.url, owner)
          assert.strictEqual(await portal.page.getByRole("link", { name: "Replay" }).count(), 0)
          // One of them by itself: who may not replay may send again what is dead.
          await portal.page.goto(`${console.url}/ui/deliveries/acme/acme.0.crm`)
          await portal.page.getByRole("button", { name: "Send again" }).click()
          await portal.page.getByRole("dialog").getByRole("button", { name: "Send again" }).click()
          await portal.page.getByText("it is sent again in a moment").waitFor()
          await portal.page
            .getByRole("heading", { name: /^Redelivery of dead letter \d+$/ })
            .waitFor()
          await portal.page.getByRole("link", { name: "Endpoints" }).click()
          await portal.page.getByRole("link", { name: "Recover" }).click()
          await portal.page.locator("#since").fill("2026-01-01T00:00:00")
          await portal.page.locator("#since").press("Tab")
          await portal.page.getByRole("button", { name: "What would be sent?" }).click()
          await portal.page
            .getByText(/^of the dead letters 3 to be sent again.*1 sent again before/)
            .waitFor()
          await portal.page.getByText("curl -X POST").waitFor()
          await portal.page.getByRole("button", { name: "Start it" }).click()
          await portal.page.getByText("3 sent again").waitFor()
          assert.deepStrictEqual([...wrong, ...portal.wrong], [])
        })
        yield* facts.count("delivered", 8)
        const again = hook.requests.slice(before)
        assert.deepStrictEqual(again.map(({ path }) => path).toSorted(), [
          ...Array.from({ length: 4 }, () => "/billing"),
          ...Array.from({ length: 4 }, () => "/crm")
        ])
      })
  )
})
