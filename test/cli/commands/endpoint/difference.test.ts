import { assert, describe, it } from "@effect/vitest"
import { differenceTexts } from "../../../../src/cli/commands/endpoint/history.ts"
import type { SettingDifference } from "../../../../src/domain/configuration.ts"

const now = new Date(2026, 2, 4, 10, 30).getTime()
const later = new Date(2026, 2, 4, 11, 30).getTime()
const old = { createdAt: 1 }
const newer = { createdAt: 2 }

describe("what differs between two configurations", () => {
  it.each<readonly [SettingDifference, said: string]>([
    [{ setting: "secrets", from: [], to: [newer] }, "secret made"],
    [
      { setting: "secrets", from: [old], to: [newer, { ...old, until: later }] },
      "secret rotated, the old one valid until 11:30:00"
    ],
    [{ setting: "secrets", from: [old], to: [newer] }, "secret rotated, the old one dropped"],
    [{ setting: "secrets", from: [newer, old], to: [newer] }, "old secrets dropped"],
    [{ setting: "secrets", from: [old], to: [] }, "secrets dropped"],
    [{ setting: "generation", from: "g1", to: "g2" }, "another endpoint of that name"],
    [{ setting: "headers", from: ["x-a", "x-b"], to: [] }, "headers x-a, x-b → none"],
    [{ setting: "adapt", to: true }, "adapt off → on"],
    [{ setting: "contact", from: "ana", to: "bo\u001b[2J" }, "contact ana → bo [2J"],
    [{ setting: "signatureHeader", to: "x-sign" }, "signature-header default → x-sign"],
    [{ setting: "headerNames.id", to: "x-id" }, "header-names.id default → x-id"],
    [{ setting: "retryFor.Invoice.>", to: "stripe" }, "retry-for Invoice.> none → stripe"],
    [{ setting: "circuit.coolDown", from: "1 minute" }, "circuit.cool-down 1 minute → default"],
    [
      { setting: "circuit.rate", from: "none", to: { percent: 5, of: 9, over: "1 minute" } },
      'circuit.rate none → {"percent":5,"of":9,"over":"1 minute"}'
    ],
    [
      { setting: "rate", from: { perSecond: 0.5, burst: 1 }, to: { perSecond: 20, burst: 40 } },
      "rate 30/min → 20/s burst 40"
    ],
    [
      { setting: "disabled", to: { at: now, by: "w1", reason: "410" } },
      "disabled since 10:30:00 by w1: 410"
    ],
    [{ setting: "paused", from: { at: now, by: "ana" } }, "resumed"],
    [{ setting: "suspended", from: { at: now, by: "w1", reason: "it failed" } }, "resumed"]
  ])("is said in a few words: %o", (difference, said) => {
    assert.deepStrictEqual(differenceTexts([difference], now), [said])
  })

  it("is said to be nothing that is told where nothing differs", () => {
    assert.match(differenceTexts([], now)[0] ?? "", /^only values that the history does not keep/)
  })
})
