import path from 'node:path';
import type { Logger } from 'pino';
import { WalletNonces } from './accounts/wallet-nonces.js';
import { WalletProofs } from './accounts/wallet-proofs.js';
import { accountAreas } from './accounts/account-areas.js';
import { AccountDeletions } from './accounts/account-deletions.js';
import { ApiKeyLookup } from './accounts/api-key-lookup.js';
import { ApiKeyValidator } from './accounts/api-key-validation.js';
import { LastUses } from './accounts/last-uses.js';
import type { ProviderKind } from './accounts/ways-in.js';
import { AgentOperations } from './agents/agent-operations.js';
import { AgentVolumeStore } from './agents/agent-volume-store.js';
import { Deployments } from './agents/deployments.js';
import { MemorySizes } from './agents/memory-sizes.js';
import { Reconciliation } from './agents/reconcile.js';
import { ReleaseStore } from './agents/release-store.js';
import { RuntimeStore } from './agents/runtime-store.js';
import { SupervisorStore } from './agents/supervisor-store.js';
import type { AgentSupervisors } from './agents/supervisors.js';
import { createAi, type Ai } from './ai/ai.js';
import { DemoShares } from './ai/demo-shares.js';
import type { AttemptResult } from './ai/no-answer-error.js';
import { CloneMemories } from './clones/clone-memories.js';
import { ClonePayments } from './clones/clone-payments.js';
import { CloneStore } from './clones/clone-store.js';
import { Clones } from './clones/clones.js';
import { CodeHost } from './code-host/code-host.js';
import { PLATFORM_NAME } from './containers/container-spec.js';
import { ChainNode } from './chain/chain-node.js';
import { Usdc } from './chain/usdc.js';
import type { DockerHost } from './containers/docker-host.js';
import { runtimeImages } from './containers/image-name.js';
import { Refusals } from './audit/refusals.js';
import { Chats } from './chat/chats.js';
import type { Database } from './database/database.js';
import { FarcasterTokens } from './farcaster/farcaster-tokens.js';
import { QuickAuth } from './farcaster/quick-auth.js';
import { Gateway } from './gateway/gateway.js';
import { GatewayCatalogue, ownActions } from './gateway/gateway-catalogue.js';
import { SessionDebits } from './gateway/session-debits.js';
import { x402Actions } from './gateway/x402.js';
import { HeartbeatSender } from './heartbeat/heartbeat-sender.js';
import { UserHeartbeats } from './heartbeat/user-heartbeats.js';
import { configuredChannels } from './notifications/configured-channels.js';
import { guardedHost } from './hosts/guarded-host.js';
import { HostDirectory } from './hosts/host-directory.js';
import { HostEngines } from './hosts/host-engines.js';
import { HostOperations } from './hosts/host-operations.js';
import type { LedgerChain } from './ledger/check-on-chain.js';
import { LiveLogs } from './logs/live-logs.js';
import { MailSender } from './mail/mail-sender.js';
import { configuredMail } from './mail/mail-transport.js';
import { IdentityProvider } from './identity-provider/identity-provider.js';
import { Notifier } from './notifications/notifier.js';
import { Retention } from './retention/retention.js';
import { EventEffects } from './security-events/apply-events.js';
import type { EventTrust } from './security-events/event-tokens.js';
import { Outbound } from './outbound/outbound.js';
import { ProviderKeys } from './security-events/provider-keys.js';
import { SecurityEvents } from './security-events/receive-events.js';
import { SecretBox } from './secrets/secret-box.js';
import type { KnownChains } from './payments/forgotten-chains.js';
import { ChainPayments } from './payments/chain-payments.js';
import { PaymentWatch } from './payments/payment-watch.js';
import { Escrow, escrowTerms } from './payment-sessions/escrow.js';
import { PayingSessions } from './payment-sessions/find-session.js';
import { PaymentSessions } from './payment-sessions/payment-sessions.js';
import { SessionHaste } from './payment-sessions/session-haste.js';
import { SessionOpenings } from './payment-sessions/session-openings.js';
import { SessionSettlements } from './payment-sessions/session-settlements.js';
import { SessionWatch } from './payment-sessions/session-watch.js';
import type { Settings } from './settings.js';
import { RoyaltySplits } from './splits/royalty-splits.js';
import { SplitPayments } from './splits/split-payments.js';
import { TokenGate } from './token-gating/token-gate.js';
import { WalletProvider } from './wallet-provider/wallet-provider.js';
import { AgentWallets } from './wallets/agent-wallets.js';
import { UserWallets } from './wallets/user-wallets.js';
import { Workspace } from './workspace/workspace.js';
import { builtHelper } from './workspace-helper.js';

/** What API and worker stand on, as whoever starts them gives it. */
export interface Foundation {
  readonly settings: Settings;
  readonly database: Database;
  readonly docker: DockerHost;
}

export interface ApiFoundation extends Foundation {
  readonly supervisors: AgentSupervisors;
  readonly log: Logger;
  /** Is told of every model that was tried for a call. */
  readonly onAttempt?: (result: AttemptResult) => void;
  /** The program by which agents' workspaces are reached; that of the build when left out. */
  readonly helper?: () => Promise<string>;
}

/** Proofs of Farcaster accounts, and what we give for them. */
export interface Farcaster {
  readonly quickAuth: QuickAuth;
  readonly tokens: FarcasterTokens;
}

/** What the API does, by area. */
export interface ApiServices {
  readonly agentWallets: AgentWallets;
  readonly ai: Ai;
  readonly apiKeys: ApiKeyLookup;
  readonly apiKeyValidator: ApiKeyValidator;
  /** The chain that payments are made on. */
  readonly chain: ChainNode;
  readonly chats: Chats;
  readonly clones: Clones;
  readonly demoShares: DemoShares;
  readonly directory: HostDirectory;
  readonly deployments: Deployments;
  /** What is sold by the run. */
  readonly gateway: Gateway;
  readonly heartbeats: UserHeartbeats;
  readonly hosts: HostOperations;
  /** True while agents beside this process cannot reach its loopback addresses. */
  readonly isGuarded: () => Promise<boolean>;
  readonly liveLogs: LiveLogs;
  readonly operations: AgentOperations;
  readonly payingSessions: PayingSessions;
  readonly paymentSessions: PaymentSessions;
  readonly providers: SignInProviders;
  readonly refusals: Refusals;
  readonly secrets: SecretBox;
  readonly sessionDebits: SessionDebits;
  readonly sessionUses: LastUses;
  readonly farcaster: Farcaster;
  readonly tokenGate: TokenGate;
  readonly usdc: Usdc;
  readonly userWallets: UserWallets;
  readonly walletProvider: WalletProvider;
  readonly wallets: WalletProofs;
  readonly securityEvents: SecurityEvents;
  readonly splits: RoyaltySplits;
  /** The operators' own folder. */
  readonly workspace: Workspace;
}

/** Those at whom people sign in, as far as they are configured. */
export interface SignInProviders {
  readonly google: IdentityProvider | undefined;
  readonly github: CodeHost | undefined;
}

/** What the worker's activities do, by area. */
export interface WorkerServices {
  readonly clones: CloneStore;
  readonly cloneMemories: CloneMemories;
  readonly clonePayments: ClonePayments;
  readonly ledgerChain: LedgerChain;
  readonly knownChains: KnownChains;
  readonly heartbeats: HeartbeatSender;
  readonly mails: MailSender;
  readonly memorySizes: MemorySizes;
  readonly notifier: Notifier;
  readonly reconciliation: Reconciliation;
  readonly paymentSessions: SessionOpenings;
  readonly settlements: SessionSettlements;
  readonly releases: ReleaseStore;
  readonly retention: Retention;
  readonly runtimes: RuntimeStore;
  readonly securityEvents: EventEffects;
  readonly splits: SplitPayments;
  readonly supervisorStore: SupervisorStore;
  readonly volumes: AgentVolumeStore;
}

/*
 * The one place where API and worker are put together. Each process gets what it does, because making some
 * of it has effects: whoever answers AI calls opens a journal of usage. Processes that do one thing are put
 * together in files of their own, beside this one: they start without reading all the rest.
 */

/** To be closed by way of `ai`. */
export function createApiServices(foundation: ApiFoundation): ApiServices {
  const { docker, database, helper = builtHelper, log, settings, supervisors } = foundation;
  const secrets = secretBox(settings);
  const { provider: aiProvider } = settings.ai;
  const { host: here } = settings.agents;
  const { summarizerUrl, x402Url } = settings.http;
  const directory = new HostDirectory({
    ...{ database, docker, secrets, here, log, helper },
    image: runtimeImages(settings.agents).usual,
    allow: settings.outbound.allow,
  });
  const engines = new HostEngines({ docker, here });
  const operations = agentOperations(foundation);
  const walletProvider = new WalletProvider(settings.walletProvider);
  const chain = chainNode(settings);
  const terms = escrowTerms(settings.chain, settings.paymentSessions);
  const ai = createAi(foundation);
  return {
    agentWallets: new AgentWallets({ secrets, chain }),
    ai,
    apiKeys: new ApiKeyLookup(database, settings.accounts, log),
    apiKeyValidator: new ApiKeyValidator(database, settings.accounts, log),
    chain,
    chats: new Chats(directory, settings),
    clones: new Clones({
      database,
      secrets,
      engines,
      enabled: settings.agents.provisioningEnabled,
      accounts: settings.accounts,
      node: chain,
      chain: settings.chain,
      settings: settings.clones,
    }),
    demoShares: new DemoShares(),
    directory,
    heartbeats: new UserHeartbeats(database),
    deployments: new Deployments({
      database,
      secrets,
      supervisors,
      engines,
      enabled: settings.agents.provisioningEnabled,
      aiProvider,
      accounts: settings.accounts,
      log,
    }),
    gateway: new Gateway({
      catalogue: new GatewayCatalogue(
        ownActions({ ai, chain, summarizerUrl }),
        x402Url === undefined ? undefined : x402Actions(x402Url, log),
      ),
      log,
    }),
    hosts: new HostOperations(database, operations),
    isGuarded: guardedHost(database, here),
    liveLogs: new LiveLogs(),
    operations,
    payingSessions: new PayingSessions(database),
    paymentSessions: new PaymentSessions({
      ...{ database, secrets, node: chain, log },
      escrow: terms && new Escrow(chain, terms),
      payments: new ChainPayments(database),
      openings: new SessionWatch(database, 'opening'),
      closings: new SessionWatch(database, 'settling'),
      haste: new SessionHaste({
        openings: sessionOpenings(foundation),
        settlements: sessionSettlements(foundation),
        payments: new PaymentWatch(new ChainPayments(database), database.changesOf('payments')),
        log,
      }),
    }),
    providers: createSignInProviders(settings),
    refusals: new Refusals(database, log),
    secrets,
    sessionDebits: new SessionDebits(database, settings.paymentSessions),
    sessionUses: new LastUses('session', database, log),
    farcaster: {
      quickAuth: new QuickAuth({
        server: settings.farcaster.authUrl,
        domain: settings.farcaster.domain ?? new URL(settings.http.webUrl).host,
      }),
      tokens: new FarcasterTokens(database),
    },
    tokenGate: new TokenGate(settings.chain),
    usdc: new Usdc(settings.chain),
    userWallets: new UserWallets({ secrets, provider: walletProvider }),
    walletProvider,
    wallets: new WalletProofs({
      nonces: new WalletNonces(database, secrets),
      chain,
      chainIds: settings.chain.signInChainIds,
      webUrl: settings.http.webUrl,
    }),
    securityEvents: new SecurityEvents(database, eventTrust(settings)),
    splits: new RoyaltySplits(settings.chain.usdc),
    workspace: operatorsWorkspace(settings),
  };
}

/** What takes accounts apart whose owners delete them: agents are removed as their owners do it. */
export const createAccountDeletions = (
  foundation: Foundation & Pick<ApiFoundation, 'log' | 'supervisors'>,
): AccountDeletions =>
  new AccountDeletions(
    foundation.database,
    accountAreas({
      database: foundation.database,
      operations: agentOperations(foundation),
      secrets: secretBox(foundation.settings),
      identityProvider: createSignInProviders(foundation.settings).google,
      log: foundation.log,
    }),
  );

const agentOperations = ({
  docker,
  log,
  settings,
  supervisors,
}: Omit<ApiFoundation, 'database' | 'onAttempt'>) =>
  new AgentOperations({
    supervisors,
    engines: new HostEngines({ docker, here: settings.agents.host }),
    secrets: secretBox(settings),
    images: runtimeImages(settings.agents),
    aiProvider: settings.ai.provider,
    accounts: settings.accounts,
    log,
  });

const sessionOpenings = ({ database, settings }: Pick<Foundation, 'database' | 'settings'>) =>
  new SessionOpenings({
    database,
    payments: new ChainPayments(database),
    node: chainNode(settings),
  });

const sessionSettlements = ({ database, settings }: Pick<Foundation, 'database' | 'settings'>) =>
  new SessionSettlements({
    database,
    payments: new ChainPayments(database),
    node: chainNode(settings),
    confirmations: settings.chain.confirmations,
    operator: settings.chain.operator?.address,
    settings: settings.paymentSessions,
  });

export function createWorkerServices({
  database,
  docker,
  log,
  settings,
}: Foundation & Pick<ApiFoundation, 'log'>): WorkerServices {
  const secrets = secretBox(settings);
  const { webUrl } = settings.http;
  const { usdc } = settings.chain;
  const { aiPort, portRange: ports, subnetPool } = settings.agents;
  const clones = new CloneStore(database);
  return {
    clones,
    cloneMemories: new CloneMemories(database),
    clonePayments: new ClonePayments({
      store: clones,
      node: chainNode(settings),
      chain: settings.chain,
    }),
    ledgerChain: { node: chainNode(settings), treasury: settings.chain.treasury },
    knownChains: { own: settings.chain.chainId, royalties: settings.chain.usdc.chainId },
    heartbeats: new HeartbeatSender(database, secrets),
    mails: new MailSender({
      database,
      transport: configuredMail(settings.mail, webUrl, log),
      webUrl,
      log,
    }),
    memorySizes: new MemorySizes(database, docker, runtimeImages(settings.agents).usual),
    notifier: new Notifier(database, configuredChannels(settings.notifications)),
    reconciliation: new Reconciliation(database, docker),
    paymentSessions: sessionOpenings({ database, settings }),
    settlements: sessionSettlements({ database, settings }),
    releases: new ReleaseStore(database),
    retention: new Retention(database, settings.retention),
    runtimes: new RuntimeStore({
      database,
      secrets,
      image: runtimeImages(settings.agents).usual,
      ports,
      subnetPool,
      aiBaseUrl: `http://${PLATFORM_NAME}:${aiPort}/v1`,
    }),
    securityEvents: new EventEffects(database, secrets),
    splits: new SplitPayments({
      database,
      payments: new ChainPayments(database),
      node: new ChainNode({ chainId: usdc.chainId, url: usdc.rpcUrl }),
    }),
    supervisorStore: new SupervisorStore(database, secrets),
    volumes: new AgentVolumeStore(database),
  };
}

/** Undefined without an identity provider. */
function eventTrust({ identityProvider }: Settings): EventTrust | undefined {
  const { clientIds, issuerUrl, riscConfigurationUrl: configurationUrl } = identityProvider;
  if (!clientIds) return undefined;
  return { issuer: issuerUrl, clientIds, keys: new ProviderKeys({ configurationUrl }) };
}

function createSignInProviders({ codeHost, http, identityProvider }: Settings): SignInProviders {
  const cameBack = (kind: ProviderKind) => `${http.webUrl}/api/auth/${kind}/callback`;
  const [idpClient] = identityProvider.clientIds ?? [];
  const { clientId: id, clientSecret: secret } = codeHost;
  return {
    google:
      idpClient === undefined
        ? undefined
        : new IdentityProvider(identityProvider, idpClient, cameBack('google')),
    github:
      id === undefined || secret === undefined
        ? undefined
        : new CodeHost(codeHost, { id, secret }, cameBack('github')),
  };
}

/** Git's temporary folders are beside it, so that no path of a caller's leads to them. */
function operatorsWorkspace({
  outbound: { allow },
  process: { dataDir },
  workspace,
}: Settings): Workspace {
  const folder = path.resolve(dataDir);
  return new Workspace({
    path: path.resolve(workspace.root ?? path.join(folder, 'workspace')),
    views: path.join(folder, 'workspace-git'),
    remotes: new Outbound({ allow }),
  });
}

const chainNode = ({ chain: { chainId, rpcUrl } }: Settings) =>
  new ChainNode({ chainId, url: rpcUrl });

const secretBox = ({ secrets }: Settings) => new SecretBox(secrets.keys);
