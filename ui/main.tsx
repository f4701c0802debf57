import { render } from "preact"
import { useEffect } from "preact/hooks"
import { Frame } from "./frame.tsx"
import { Alerts } from "./pages/alerts.tsx"
import { Audit } from "./pages/audit.tsx"
import { DeadLetters } from "./pages/dead-letters.tsx"
import { Deliveries } from "./pages/deliveries.tsx"
import { Delivery } from "./pages/delivery.tsx"
import { Endpoint } from "./pages/endpoint.tsx"
import { EditEndpoint, NewEndpoint } from "./pages/endpoint-settings.tsx"
import { Endpoints } from "./pages/endpoints.tsx"
import { Event } from "./pages/event.tsx"
import { Live } from "./pages/live.tsx"
import { Login } from "./pages/login.tsx"
import { Overview } from "./pages/overview.tsx"
import { System } from "./pages/system.tsx"
import { Tokens } from "./pages/tokens.tsx"
import { showTheme } from "./parts.tsx"
import { address, path } from "./router.ts"
import { readSession, session } from "./session.ts"

const Page = () => {
  const [name, tenant, id, part] = path.value
  const { endpoint, tenant: own = "*" } = session.value ?? {}
  if (name === undefined)
    return endpoint === undefined ? <Overview /> : <Endpoint tenant={own} id={endpoint} />
  if (name === "deliveries" && tenant !== undefined && id !== undefined)
    return <Delivery key={`${tenant}/${id}`} tenant={tenant} id={id} />
  if (name === "deliveries") return <Deliveries />
  if (name === "endpoints" && tenant !== undefined && id !== undefined && part === "settings")
    return <EditEndpoint key={`${tenant}/${id}`} tenant={tenant} id={id} />
  if (name === "endpoints" && tenant === "new" && id === undefined) return <NewEndpoint />
  if (name === "endpoints" && tenant !== undefined && id !== undefined)
    return <Endpoint key={`${tenant}/${id}`} tenant={tenant} id={id} />
  if (name === "endpoints")
    return endpoint === undefined ? <Endpoints /> : <Endpoint tenant={own} id={endpoint} />
  if (name === "events" && tenant !== undefined && id !== undefined)
    return <Event key={`${tenant}/${id}`} tenant={tenant} id={id} />
  if (name === "dead-letters") return <DeadLetters />
  if (name === "live") return <Live />
  if (name === "alerts") return <Alerts />
  if (name === "audit") return <Audit />
  if (name === "tokens") return <Tokens />
  if (name === "system") return <System />
  return (
    <div class="card empty">
      <h1>There is no such page</h1>
      <p>
        <a href={address([])}>Go to the overview</a>
      </p>
    </div>
  )
}

const titles: Readonly<Record<string, string>> = {
  deliveries: "Deliveries",
  endpoints: "Endpoints",
  "dead-letters": "Dead letters",
  live: "Live",
  alerts: "Alerts",
  audit: "Audit",
  tokens: "Tokens",
  system: "System",
  login: "Log in"
}

const App = () => {
  const [name = "", , id] = path.value
  const brand = session.value?.brand?.name ?? "Petrel"
  useEffect(() => {
    document.title = `${id ?? titles[name] ?? "Overview"} · ${brand}`
  }, [name, id, brand])
  if (name === "login" || session.value === null) return <Login />
  if (session.value === undefined) return <main aria-busy="true">Loading…</main>
  return (
    <Frame>
      <Page />
    </Frame>
  )
}

showTheme()
if (path.value[0] !== "login") void readSession()
render(<App />, document.getElementById("app") as HTMLElement)
