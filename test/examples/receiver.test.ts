import { describe, it } from "@effect/vitest"
import { runShop, shopLimitMs } from "./shop.ts"

describe("the shop that takes each webhook once", () => {
  it.live("ships one parcel although it dies twice", () => runShop(), shopLimitMs)
})
