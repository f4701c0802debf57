import { assert, describe, it } from "@effect/vitest"
import { rotatedSecrets } from "../../../src/operations/endpoints/endpoint-secrets.ts"

const now = 1_800_000_000_000

describe("a rotation", () => {
  const day = 86_400_000
  const old = { value: "old", createdAt: 1 }

  it("puts the new secret first and lets the old one sign for a while", () => {
    assert.deepStrictEqual(rotatedSecrets([old], "new", day, now), [
      { value: "new", createdAt: now },
      { value: "old", createdAt: 1, until: now + day }
    ])
  })

  it("never gives an older secret more time than it had, and drops those past theirs", () => {
    const older = { value: "older", createdAt: 0, until: now + 5 }
    const past = { value: "past", createdAt: 0, until: now }
    assert.deepStrictEqual(rotatedSecrets([old, older, past], "new", day, now).slice(1), [
      { ...old, until: now + day },
      older
    ])
  })

  it("goes back to an old secret without the end that it had", () => {
    const older = { value: "older", createdAt: 0, until: now + 5 }
    assert.deepStrictEqual(rotatedSecrets([old, older], "older", day, now), [
      { value: "older", createdAt: now },
      { ...old, until: now + day }
    ])
  })

  it("drops all old secrets at once where none is to be kept", () => {
    const older = { value: "older", createdAt: 0, until: now + day }
    assert.deepStrictEqual(rotatedSecrets([old, older], "new", 0, now), [
      { value: "new", createdAt: now }
    ])
  })
})
