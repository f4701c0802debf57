import { assert, describe, vi } from "@effect/vitest"
import { Effect } from "effect"
import { OutboxReporter } from "../../src/cluster/outbox-reports.ts"
import { browser, hasBrowser } from "../kit/browser.ts"
import { endpoint, history, nth, worker } from "../kit/engine.ts"
import { startGateway, stripeEvent, stripeSecret, stripeWebhook } from "../kit/gateway.ts"
import { faults, logIn, openPage, operatorPath, pagesConsole } from "../kit/pages.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

vi.setConfig({ testTimeout: 240_000 })

const { scenario } = onServer()

describe.skipIf(!hasBrowser)("what comes in, in a browser", () => {
  scenario(
    "is let in by a source, kept in quarantine where it is no event, and told of by outboxes",
    (place) =>
      Effect.gen(function* () {
        const hook = yield* receiver()
        yield* endpoint({ id: "billing", url: hook.url, types: ["stripe.>"] })
        const facts = yield* history
        yield* worker()
        const console = yield* pagesConsole(place)
        const operator = yield* operatorPath("Ada")
        const started = yield* browser
        const watched = yield* Effect.promise(() => openPage(started, console.url))
        const { page, wrong } = watched
        yield* Effect.promise(async () => {
          await logIn(watched, console.url, operator)
          await page.getByRole("link", { name: "Sources" }).click()
          await page.getByText("No provider's webhooks come in yet").waitFor()
          wrong.push(...(await faults(page)))
          await page.getByRole("link", { name: "New source" }).click()
          await page.locator("#tenant").fill("acme")
          await page.locator('[id="provider"]').selectOption("stripe")
          await page.getByRole("button", { name: "Add it" }).click()
          // Without its secret nothing could be verified.
          await page.getByRole("alert").getByText("secret").waitFor()
          await page.locator('[id="secrets"]').fill(stripeSecret)
          await page
            .getByText("petrel source add acme/stripe --provider stripe --secret-file FILE")
            .waitFor()
          wrong.push(...(await faults(page)))
          assert.notInclude(await page.content(), stripeSecret)
          await page.getByRole("button", { name: "Add it" }).click()
          await page.getByText("/in/acme/stripe", { exact: true }).waitFor()
          await page.locator('[id="rate"]').fill("200/s")
          await page.getByText("petrel source set acme/stripe --rate 200/s").waitFor()
          await page.getByRole("button", { name: "Save" }).click()
          await page.waitForFunction(() => {
            const { document } = globalThis as unknown as {
              document: { querySelector: (of: string) => { value: string } | null }
            }
            return document.querySelector("#rate")?.value.startsWith("200/s")
          })
          await page.getByText("Rotate").first().click()
          await page.locator("#secret").fill("whsec_the_next_one")
          const rotations: Array<string> = []
          page.on("request", (request) => {
            if (request.url().endsWith("/rotate")) rotations.push(request.url())
          })
          await page.getByRole("button", { name: "Rotate" }).dblclick()
          await page.getByText("The new secret holds.").waitFor()
          assert.lengthOf(rotations, 1)
          await page.getByText("older").waitFor()
          wrong.push(...(await faults(page)))
        })
        const { post } = yield* startGateway()
        const path = "/in/acme/stripe"
        // The old secret holds for a while.
        yield* post(path, stripeWebhook(stripeEvent("evt_1")))
        yield* post(path, stripeWebhook({ hello: "world" }))
        yield* post(path, stripeWebhook({ good: "bye" }, "whsec_the_next_one"))
        yield* facts.count("quarantined", 2)
        yield* hook.received(1)
        yield* Effect.promise(async () => {
          await page.getByRole("link", { name: "Quarantine", exact: true }).first().click()
          await page.getByRole("heading", { name: "Quarantine" }).waitFor()
          await page.getByRole("cell", { name: "unreadable" }).nth(1).waitFor()
          wrong.push(...(await faults(page)))
          await page.keyboard.press("j")
          await page.keyboard.press("Enter")
          await page.getByText('"hello": "world"').waitFor()
          // What its problem names in backticks is shown as code.
          await page.locator(".note code", { hasText: /^type$/ }).waitFor()
          wrong.push(...(await faults(page)))
          await page.getByRole("button", { name: "Release" }).click()
          await page
            .getByText(/petrel quarantine release acme \d/)
            .first()
            .waitFor()
          // Its provider cannot say what it is.
          await page.getByRole("dialog").getByRole("button", { name: "Release" }).click()
          await page.getByRole("status").getByText("type").waitFor()
          await page.getByRole("button", { name: "Release" }).click()
          await page.getByRole("dialog").getByRole("textbox").fill("greeting")
          await page.getByRole("dialog").getByRole("button", { name: "Release" }).click()
          await page.getByRole("cell", { name: "stripe.greeting" }).waitFor()
          await page.goto(`${console.url}/ui/quarantine?tenant=acme`)
          await page.getByRole("cell", { name: "unreadable" }).waitFor()
          await page.keyboard.press("j")
          await page.keyboard.press("Enter")
          await page.getByText('"good": "bye"').waitFor()
          await page.getByRole("button", { name: "Discard" }).click()
          await page.getByRole("dialog").getByRole("button", { name: "Discard" }).click()
          await page.getByText("Nothing is in quarantine").waitFor()
        })
        for (const n of [1, 2, 3]) yield* post(path, stripeWebhook({ n }, "whsec_the_next_one"))
        yield* Effect.promise(async () => {
          await page.getByRole("button", { name: "Release these 3" }).waitFor()
          await page.getByRole("button", { name: "Discard these 3" }).focus()
          await page.getByText("petrel quarantine discard acme --all").waitFor()
          await page.getByLabel("reason").selectOption("id-collision")
          await page.getByText("Nothing in quarantine matches").waitFor()
          await page.getByLabel("reason").selectOption("unreadable")
          await page.getByRole("checkbox").nth(0).check()
          await page.getByRole("checkbox").nth(1).check()
          wrong.push(...(await faults(page)))
          await page.getByRole("button", { name: "Release these 2" }).click()
          const dialog = page.getByRole("dialog")
          await dialog.getByText(/petrel quarantine release acme \d+ \d+/).waitFor()
          await dialog.getByRole("textbox").fill("greeting")
          await dialog.getByRole("button", { name: "Release" }).click()
          await page.getByRole("button", { name: "Discard this one" }).click()
          await dialog.getByText("petrel quarantine discard acme --reason unreadable").waitFor()
          await dialog.getByRole("button", { name: "Discard" }).click()
          await page.getByText("Nothing in quarantine matches").waitFor()
        })
        yield* hook.received(4)
        assert.strictEqual(nth(hook.requests, 1).body.toString(), '{"hello":"world"}')
        yield* facts.count("quarantine-released", 3)
        yield* facts.count("quarantine-discarded", 2)
        const by = facts.of("quarantine-released")[0]?.by
        assert.match(String(by), /Ada/)

        yield* Effect.promise(async () => {
          await page.getByRole("link", { name: "Outboxes" }).click()
          await page.getByText("No relay has reported an outbox").waitFor()
        })
        const told = {
          v: 1,
          name: "shop",
          relay: "db1 7",
          pending: 5,
          oldestMs: 61_000,
          setAside: 2
        } as const
        yield* new OutboxReporter().write(
          { ...told, at: Date.now(), problem: "the database is away", problemMs: 61_000 },
          true
        )
        yield* Effect.promise(async () => {
          await page.getByText("shop: the database is away, for 1 min.").waitFor()
          await page.getByRole("cell", { name: "kept from it" }).waitFor()
          await page.getByText("petrel outbox list").waitFor()
          wrong.push(...(await faults(page)))

          await page.goto(`${console.url}/ui/sources/acme/stripe`)
          await page.getByRole("button", { name: "Remove" }).click()
          await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click()
          await page.getByText("No provider's webhooks come in yet").waitFor()
          assert.deepStrictEqual(wrong, [])
        })
        const refused = yield* post(path, stripeWebhook(stripeEvent("evt_2")))
        assert.notStrictEqual(refused.status, 200)
      })
  )
})
