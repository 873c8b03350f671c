import path from 'node:path';
import type { Logger } from 'pino';
import { WalletNonces } from './accounts/accounts/wallet-nonces.js';
import { WalletProofs } from './accounts/accounts/wallet-proofs.js';
import { accountCleanups } from './account-lifecycle/account-cleanups.js';
import { AccountDeletions } from './accounts/accounts/account-deletions.js';
import { ApiKeyLookup } from './accounts/accounts/api-key-lookup.js';
import { ApiKeyValidator } from './accounts/accounts/api-key-validation.js';
import { LastUses } from './accounts/accounts/last-uses.js';
import { SignedInSessions } from './accounts/accounts/sessions.js';
import type { ProviderKind } from './types/sign-in-methods.js';
import { AgentOperations } from './agents/lifecycle/agent-operations.js';
import { AgentsBySubdomain } from './agents/address/agents-by-subdomain.js';
import { AgentVolumeStore } from './agents/memory/agent-volume-store.js';
import { Deployments } from './agents/lifecycle/deployments.js';
import { MemorySizes } from './agents/memory/memory-sizes.js';
import { Reconciliation } from './agents/operations/reconcile.js';
import { AgentEmails } from './agents/email/agent-emails.js';
import { EmailEvents } from './agents/email/email-events.js';
import { Resend } from './agents/email/resend.js';
import { AgentPorts } from './agents/agents/agent-ports.js';
import { ContainerSpecs } from './agents/operations/container-specs.js';
import { OperationStore } from './agents/operations/operation-store.js';
import { ReleaseStore } from './agents/operations/release-store.js';
import { WatchdogStore } from './agents/watchdog/watchdog-store.js';
import type { AgentSupervisors } from './agents/operations/supervisors.js';
import { createAi, type Ai } from './ai/routing/ai.js';
import { DemoBudget } from './ai/routing/demo-budget.js';
import type { AttemptListener } from './ai/routing/completions.js';
import { AgentModelSizes } from './agents/model/agent-model-sizes.js';
import { ModelDiscovery } from './ai/models/discovery.js';
import { Models } from './ai/models/models.js';
import { Router } from './ai/routing/route.js';
import { ClonePayments } from './agents/clones/clone-payments.js';
import { CloneStore } from './agents/clones/clone-store.js';
import { Clones } from './agents/clones/clones.js';
import { Bus } from './bus/bus.js';
import { BusAcceptance } from './bus/bus-acceptance.js';
import { BusDelivery } from './bus/bus-delivery.js';
import { BusSignatures } from './bus/bus-signatures.js';
import { BusWebhooks } from './bus/bus-webhooks.js';
import { CodeHost } from './accounts/sign-in/code-host/code-host.js';
import { PLATFORM_NAME } from './docker/containers/container-spec.js';
import { ChainNode, type Chain } from './money/chain/chain-node.js';
import { Usdc } from './money/chain/usdc.js';
import type { DockerHost } from './docker/containers/docker-host.js';
import { runtimeImages } from './docker/containers/image-name.js';
import { Refusals } from './platform/audit/refusals.js';
import { ProcessorEventEffects } from './billing/apply-events.js';
import { BillingReconciliation } from './billing/billing-reconciliation.js';
import { Checkouts } from './billing/checkouts.js';
import { PlanCheckouts } from './billing/plan-checkouts.js';
import { PlanEndings } from './billing/plan-endings.js';
import { ProcessorReadings } from './billing/processor-readings.js';
import { ProcessorSubscriptions } from './billing/processor-subscriptions.js';
import { Processor } from './billing/processor.js';
import { ProcessorEvents } from './billing/receive-events.js';
import { SubscriptionStates } from './billing/subscription-states.js';
import { ChannelStates } from './agents/channels/channel-states.js';
import { Chats } from './agents/chat/chats.js';
import { OwnerTurns } from './agents/chat/owner-turns.js';
import type { Database } from './platform/database/database.js';
import { DataFeeds } from './feeds/data-feeds.js';
import { FarcasterTokens } from './accounts/sign-in/farcaster/farcaster-tokens.js';
import { QuickAuth } from './accounts/sign-in/farcaster/quick-auth.js';
import { Gateway } from './gateway/gateway.js';
import { GatewayCatalogue, builtInActions } from './gateway/gateway-catalogue.js';
import { SessionDebits } from './gateway/session-debits.js';
import { x402Actions } from './gateway/x402.js';
import { X402Gateway } from './gateway/x402-gateway.js';
import { X402Payments } from './gateway/x402-payments.js';
import { HeartbeatSender } from './agents/heartbeat/heartbeat-sender.js';
import { UserHeartbeats } from './agents/heartbeat/user-heartbeats.js';
import { configuredChannels } from './notifications/configured-channels.js';
import { networkIsolationCheck } from './agents/hosts/network-isolation-check.js';
import { GatewayConnections } from './agents/hosts/gateway-connections.js';
import { HostDirectory } from './agents/hosts/host-directory.js';
import { DockerHosts } from './agents/hosts/docker-hosts.js';
import type { LocalEngine } from './agents/hosts/local-engine.js';
import { HostOperations } from './agents/lifecycle/host-operations.js';
import { GasBudget } from './money/gas/gas-budget.js';
import type { LedgerChain } from './money/ledger-check/check-on-chain.js';
import { LiveLogs } from './agents/logs/live-logs.js';
import { MailSender } from './accounts/mail-delivery/mail-sender.js';
import { configuredMail } from './accounts/mail-delivery/mail-transport.js';
import { IdentityProvider } from './accounts/sign-in/identity-provider/identity-provider.js';
import { Notifier } from './notifications/notifier.js';
import { platformHealth } from './agents/hosts/platform-health.js';
import type { Readiness } from './platform/operators/readiness.js';
import { Retention } from './retention/retention.js';
import { EventEffects } from './accounts/security-events/apply-events.js';
import type { EventTrust } from './accounts/security-events/event-tokens.js';
import { platformOutbound } from './platform/outbound/platform-outbound.js';
import { ProviderWebhook } from './platform/webhooks/provider-webhook.js';
import { ProviderKeys } from './accounts/security-events/provider-keys.js';
import { SecurityEvents } from './accounts/security-events/receive-events.js';
import { SecretBox } from './platform/secrets/secret-box.js';
import type { KnownChains } from './money/payments/forgotten-chains.js';
import { ChainPayments } from './money/payments/chain-payments.js';
import { Escrow, escrowTerms } from './money/sessions/escrow.js';
import { SessionLookup } from './money/sessions/find-session.js';
import { PaymentSessions } from './money/sessions/payment-sessions.js';
import { SessionWatch } from './money/sessions/session-watch.js';
import { RadioAdmission } from './radio/admission.js';
import { createRadioEngine, type RadioEngine } from './radio/radio-engine.js';
import { RadioStreams } from './radio/streams.js';
import type { Settings } from './settings.js';
import { RoyaltySplits } from './money/splits/royalty-splits.js';
import { SplitPayments } from './money/splits/split-payments.js';
import { ScheduledTasks } from './agents/tasks/scheduled-tasks.js';
import { TaskRuns } from './agents/tasks/task-runs.js';
import { TokenGate } from './accounts/token-gating/token-gate.js';
import { WalletProvider } from './money/wallets/provider/wallet-provider.js';
import { AgentWallets } from './money/wallets/agent-wallets.js';
import { UserWallets } from './money/wallets/user-wallets.js';
import { SwarmStore } from './swarms/swarm-store.js';
import { Swarms } from './swarms/swarms.js';
import { MediaFiles } from './videos/media-files.js';
import { VideoEvents } from './videos/video-events.js';
import { VideoProvider } from './videos/video-provider.js';
import { VideoSteps } from './videos/video-steps.js';
import { VideoStore } from './videos/video-store.js';
import { Videos } from './videos/videos.js';
import { VerificationStore } from './agents/verification/verification-store.js';
import { Verifications } from './agents/verification/verifications.js';
import { Workspace } from './workspace/workspace.js';
import { builtHelper } from './workspace-helper.js';

/** Parts that API and worker share, provided by their entry points. */
export interface Foundation {
  readonly settings: Settings;
  readonly database: Database;
  readonly docker: DockerHost;
}

export interface ApiFoundation extends Omit<Foundation, 'docker'> {
  /** Docker of the process's own machine; undefined for a process that uses no engine. */
  readonly docker: DockerHost | undefined;
  readonly supervisors: AgentSupervisors;
  readonly log: Logger;
  /** Called for every model that an AI call tries. */
  readonly onAttempt?: AttemptListener;
  /** The program that accesses agents' workspaces; the built one by default. */
  readonly helper?: () => Promise<string>;
}

/** Proofs of Farcaster accounts, and the tokens issued for them. */
export interface Farcaster {
  readonly quickAuth: QuickAuth;
  readonly tokens: FarcasterTokens;
}

/** Services of the API by area. */
export interface ApiServices {
  readonly agentsBySubdomain: AgentsBySubdomain;
  readonly agentWallets: AgentWallets;
  readonly ai: Ai;
  readonly apiKeys: ApiKeyLookup;
  readonly apiKeyValidator: ApiKeyValidator;
  readonly bus: Bus;
  readonly dataFeeds: DataFeeds;
  readonly busSignatures: BusSignatures;
  readonly busWebhooks: BusWebhooks;
  /** The chain of payments. */
  readonly chain: Chain;
  readonly channelStates: ChannelStates;
  readonly chats: Chats;
  readonly checkouts: Checkouts;
  readonly clones: Clones;
  readonly demoBudget: DemoBudget;
  readonly directory: HostDirectory;
  readonly deployments: Deployments;
  /** Connections to the gateways of agents. */
  readonly gatewayConnections: GatewayConnections;
  /** Gateway of functions that are paid for each run. */
  readonly gateway: Gateway;
  readonly heartbeats: UserHeartbeats;
  readonly hosts: HostOperations;
  /** True while agents on this machine cannot reach its loopback addresses. */
  readonly isGuarded: () => Promise<boolean>;
  readonly liveLogs: LiveLogs;
  readonly operations: AgentOperations;
  readonly payingSessions: SessionLookup;
  readonly paymentSessions: PaymentSessions;
  readonly planCheckouts: PlanCheckouts;
  readonly platformHealth: Readiness;
  readonly processorEvents: ProcessorEvents;
  readonly providers: SignInProviders;
  readonly radioAdmission: RadioAdmission;
  readonly radioStreams: RadioStreams;
  readonly refusals: Refusals;
  readonly secrets: SecretBox;
  readonly sessionDebits: SessionDebits;
  readonly sessions: SignedInSessions;
  readonly sessionUses: LastUses;
  readonly emailEvents: EmailEvents;
  readonly farcaster: Farcaster;
  readonly tokenGate: TokenGate;
  readonly usdc: Usdc;
  readonly userWallets: UserWallets;
  readonly walletProvider: WalletProvider;
  readonly wallets: WalletProofs;
  readonly securityEvents: SecurityEvents;
  readonly scheduledTasks: ScheduledTasks;
  readonly splits: RoyaltySplits;
  readonly swarms: Swarms;
  readonly verifications: Verifications;
  readonly videoEvents: VideoEvents;
  readonly videos: Videos;
  /** The operators' own folder. */
  readonly workspace: Workspace;
  readonly x402: X402Gateway;
  readonly x402Payments: X402Payments;
}

/** Sign-in providers; undefined if not configured. */
export interface SignInProviders {
  readonly google: IdentityProvider | undefined;
  readonly github: CodeHost | undefined;
}

/** Services of the worker's activities by area. */
export interface WorkerServices {
  readonly agentEmails: AgentEmails;
  readonly agentPorts: AgentPorts;
  readonly billingReconciliation: BillingReconciliation;
  readonly busDelivery: BusDelivery;
  readonly clones: CloneStore;
  readonly clonePayments: ClonePayments;
  readonly containerSpecs: ContainerSpecs;
  readonly modelDiscovery: ModelDiscovery;
  readonly ledgerChain: LedgerChain;
  readonly knownChains: KnownChains;
  readonly heartbeats: HeartbeatSender;
  readonly mails: MailSender;
  readonly notifier: Notifier;
  readonly processorEvents: ProcessorEventEffects;
  readonly processorReadings: ProcessorReadings;
  readonly operationStore: OperationStore;
  /** Turns of agents that no client waits for. */
  readonly ownerTurns: OwnerTurns;
  /** Undefined without a radio. */
  readonly radio: RadioEngine | undefined;
  readonly releases: ReleaseStore;
  readonly retention: Retention;
  readonly securityEvents: EventEffects;
  readonly splits: SplitPayments;
  readonly swarms: SwarmStore;
  readonly taskRuns: TaskRuns;
  readonly verifications: VerificationStore;
  readonly videoStore: VideoStore;
  readonly videoSteps: VideoSteps;
  readonly volumes: AgentVolumeStore;
  readonly watchdogStore: WatchdogStore;
}

/** Services of a worker on the machine of a Docker host. */
export interface HostServices {
  readonly memorySizes: MemorySizes;
  readonly reconciliation: Reconciliation;
}

/*
 * Composes the services of API and worker. Each process creates only its own, since creation has effects:
 * a process that answers AI calls opens a usage journal. Processes with a single task have files beside
 * this one, so that they start without loading everything.
 */

/** Creates the API's services; close them through `ai`. */
export function createApiServices(foundation: ApiFoundation): ApiServices {
  const { database, helper = builtHelper, log, settings, supervisors } = foundation;
  const secrets = secretBox(settings);
  const { provider: aiProvider } = settings.ai;
  const engine = localEngine(foundation);
  const { summarizer, x402Url } = settings.http;
  const directory = new HostDirectory({
    database,
    engine,
    secrets,
    ca: settings.hosts.ca,
    log,
    helper,
    image: runtimeImages(settings.agents).usual,
    allow: settings.outbound.allow,
  });
  const engines = new DockerHosts(engine);
  const walletProvider = new WalletProvider(settings.walletProvider);
  const chain = chainNode(settings);
  const processor = new Processor(settings.billing);
  const terms = escrowTerms(settings.chain, settings.paymentSessions);
  const gas = new GasBudget(database, settings.chain.gas);
  const ai = createAi({ ...foundation, secrets });
  const { models } = ai;
  const operations = agentOperations(foundation, models);
  const x402 = new X402Gateway(x402Url);
  const tokenGate = new TokenGate(settings.chain);
  const radio = createRadioEngine(settings.radio);
  return {
    agentsBySubdomain: new AgentsBySubdomain(database),
    agentWallets: new AgentWallets({ secrets, chain }),
    ai,
    apiKeys: new ApiKeyLookup(database, settings.accounts, log),
    apiKeyValidator: new ApiKeyValidator(database, settings.accounts, log),
    bus: new Bus({
      database,
      chain,
      acceptance: new BusAcceptance({ database, secrets }),
      accounts: settings.accounts,
    }),
    busSignatures: new BusSignatures(database, secrets),
    busWebhooks: new BusWebhooks({ secrets, outbound: platformOutbound(settings) }),
    dataFeeds: new DataFeeds({
      database,
      outbound: platformOutbound(settings),
      feeds: settings.feeds.feeds,
    }),
    chain,
    channelStates: new ChannelStates(directory),
    chats: new Chats(directory, ai.router),
    checkouts: new Checkouts({
      processor,
      settings: settings.billing,
      webUrl: settings.http.webUrl,
    }),
    clones: new Clones({
      database,
      secrets,
      engines,
      enabled: settings.agents.provisioningEnabled,
      models,
      accounts: settings.accounts,
      node: chain,
      chain: settings.chain,
      settings: settings.clones,
    }),
    demoBudget: new DemoBudget(),
    directory,
    heartbeats: new UserHeartbeats(database),
    deployments: new Deployments({
      database,
      secrets,
      supervisors,
      engines,
      enabled: settings.agents.provisioningEnabled,
      aiProvider,
      models,
      accounts: settings.accounts,
      log,
    }),
    gatewayConnections: new GatewayConnections(engine?.id, async (agent) =>
      (await directory.accessTo(agent.host)).connect(agent),
    ),
    gateway: new Gateway({
      catalogue: new GatewayCatalogue(
        builtInActions({ ai, chain, summarizer }),
        x402Url === undefined ? undefined : x402Actions(x402Url, log),
      ),
      log,
    }),
    hosts: new HostOperations(database, operations),
    isGuarded: networkIsolationCheck(database, engine?.id),
    liveLogs: new LiveLogs(),
    operations,
    payingSessions: new SessionLookup(database),
    paymentSessions: new PaymentSessions({
      database,
      secrets,
      node: chain,
      log,
      escrow: terms && new Escrow(chain, terms),
      payments: new ChainPayments(database),
      gas,
      watch: new SessionWatch(database),
    }),
    planCheckouts: new PlanCheckouts({
      ...subscriptionParts(database, settings),
      webUrl: settings.http.webUrl,
    }),
    emailEvents: new EmailEvents(database, settings.email),
    platformHealth: platformHealth(database, supervisors),
    processorEvents: new ProcessorEvents(database, processor),
    providers: createSignInProviders(settings),
    radioAdmission: new RadioAdmission({
      database,
      gate: tokenGate,
      sources: radio?.sources,
      log,
    }),
    radioStreams: new RadioStreams({ database, gate: tokenGate, engine: radio }),
    refusals: new Refusals(database, log),
    secrets,
    sessionDebits: new SessionDebits(database, settings.paymentSessions),
    sessions: new SignedInSessions(database, settings.accounts),
    sessionUses: new LastUses('session', database, log),
    farcaster: {
      quickAuth: new QuickAuth({
        server: settings.farcaster.authUrl,
        domain: settings.farcaster.domain ?? new URL(settings.http.webUrl).host,
      }),
      tokens: new FarcasterTokens(database),
    },
    tokenGate,
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
    scheduledTasks: new ScheduledTasks(settings.accounts),
    splits: new RoyaltySplits(settings.chain.usdc, gas),
    swarms: new Swarms(),
    verifications: new Verifications({ database, engines }),
    videoEvents: new VideoEvents(
      database,
      new ProviderWebhook({
        kind: 'video',
        secrets: settings.videos.webhookSecrets,
        setting: 'VIDEO_WEBHOOK_SECRET',
      }),
    ),
    videos: new Videos({ database, files: mediaFiles(settings), settings: settings.videos }),
    workspace: operatorsWorkspace(settings),
    x402,
    x402Payments: new X402Payments(database, x402, settings.x402),
  };
}

/** Creates the service that deletes accounts; it removes agents in the same way as their owners do. */
export const createAccountDeletions = (
  foundation: Omit<ApiFoundation, 'helper' | 'onAttempt'>,
): AccountDeletions =>
  new AccountDeletions(
    foundation.database,
    accountCleanups({
      database: foundation.database,
      operations: agentOperations(foundation, new Models(foundation.settings.ai)),
      planEndings: new PlanEndings({
        database: foundation.database,
        processor: subscriptionParts(foundation.database, foundation.settings).processor,
      }),
      secrets: secretBox(foundation.settings),
      media: mediaFiles(foundation.settings),
      identityProvider: createSignInProviders(foundation.settings).google,
      icecast: createRadioEngine(foundation.settings.radio)?.icecast,
      log: foundation.log,
    }),
  );

const agentOperations = (
  foundation: Omit<ApiFoundation, 'database' | 'onAttempt'>,
  models: Models,
) => {
  const { log, settings, supervisors } = foundation;
  return new AgentOperations({
    supervisors,
    engines: new DockerHosts(localEngine(foundation)),
    secrets: secretBox(settings),
    images: runtimeImages(settings.agents),
    aiProvider: settings.ai.provider,
    models,
    accounts: settings.accounts,
    log,
  });
};

const localEngine = ({
  docker,
  settings,
}: Pick<ApiFoundation, 'docker' | 'settings'>): LocalEngine | undefined =>
  docker && { docker, id: settings.agents.host };

export const createHostServices = ({ database, docker, settings }: Foundation): HostServices => ({
  memorySizes: new MemorySizes(database, docker, runtimeImages(settings.agents).usual),
  reconciliation: new Reconciliation(database, docker),
});

export function createWorkerServices({
  database,
  log,
  settings,
}: Pick<ApiFoundation, 'database' | 'log' | 'settings'>): WorkerServices {
  const secrets = secretBox(settings);
  const { webUrl } = settings.http;
  const { usdc } = settings.chain;
  const { aiPort, portRange: ports, subnetPool } = settings.agents;
  const clones = new CloneStore(database);
  const { ai } = settings;
  const models = new Models(ai);
  const router = new Router(models, ai.providers, ai.provider);
  const ownerTurns = new OwnerTurns(database, secrets);
  const subscriptions = subscriptionParts(database, settings);
  return {
    agentEmails: new AgentEmails({
      database,
      provider: new Resend(settings.email),
      settings: settings.email,
      admins: settings.accounts,
    }),
    agentPorts: new AgentPorts(database),
    billingReconciliation: new BillingReconciliation({
      database,
      ...subscriptions,
      events: new ProcessorEvents(database, new Processor(settings.billing)),
      log,
    }),
    busDelivery: new BusDelivery({ database, secrets, outbound: platformOutbound(settings) }),
    clones,
    clonePayments: new ClonePayments({
      store: clones,
      node: chainNode(settings),
      chain: settings.chain,
    }),
    ledgerChain: { node: chainNode(settings), treasury: settings.chain.treasury },
    knownChains: { own: settings.chain.chainId, royalties: settings.chain.usdc.chainId },
    heartbeats: new HeartbeatSender(database, ownerTurns),
    mails: new MailSender({
      database,
      transport: configuredMail(settings.mail, webUrl, log),
      webUrl,
      log,
    }),
    modelDiscovery: new ModelDiscovery({ ...ai, models, log }),
    notifier: new Notifier(database, configuredChannels(settings.notifications)),
    processorEvents: new ProcessorEventEffects(database),
    processorReadings: new ProcessorReadings({ database, ...subscriptions }),
    operationStore: new OperationStore(database, secrets),
    ownerTurns,
    radio: createRadioEngine(settings.radio),
    releases: new ReleaseStore(database),
    retention: new Retention(database, settings.retention),
    containerSpecs: new ContainerSpecs({
      database,
      secrets,
      image: runtimeImages(settings.agents).usual,
      ports,
      subnetPool,
      aiBaseUrl: `http://${PLATFORM_NAME}:${aiPort}/v1`,
      modelSizes: new AgentModelSizes(router, settings.accounts),
    }),
    securityEvents: new EventEffects(database, secrets),
    splits: new SplitPayments({
      database,
      payments: new ChainPayments(database),
      node: new ChainNode({ chainId: usdc.chainId, url: usdc.rpcUrl }),
    }),
    swarms: new SwarmStore(database),
    taskRuns: new TaskRuns(database, settings.accounts),
    verifications: new VerificationStore(database),
    ...videoParts(database, settings),
    volumes: new AgentVolumeStore(database),
    watchdogStore: new WatchdogStore(database),
  };
}

/** Returns the folder of media, which API and worker share. */
const mediaFiles = ({ process: { dataDir }, videos: { mediaRoot } }: Settings): MediaFiles =>
  new MediaFiles(path.resolve(mediaRoot ?? path.join(dataDir, 'media')));

/** Returns the rows of videos and the steps of their runs. */
function videoParts(database: Database, settings: Settings) {
  const files = mediaFiles(settings);
  const limit = settings.videos.mediaLimit;
  const videoStore = new VideoStore({ database, files, limit });
  const provider = new VideoProvider({
    settings: settings.videos,
    webUrl: settings.http.webUrl,
    outbound: platformOutbound(settings),
  });
  return { videoStore, videoSteps: new VideoSteps({ provider, store: videoStore, files, limit }) };
}

/** Returns the subscriptions at the payment processor, and their states here. */
function subscriptionParts(database: Database, { billing }: Settings) {
  const processor = new ProcessorSubscriptions(new Processor(billing), billing);
  return { processor, states: new SubscriptionStates({ database, processor, settings: billing }) };
}

/** Returns the trusted event sender; undefined without an identity provider. */
function eventTrust({ identityProvider, retention }: Settings): EventTrust | undefined {
  const { clientIds, issuerUrl, riscConfigurationUrl: configurationUrl } = identityProvider;
  if (!clientIds) return undefined;
  const keys = new ProviderKeys({ configurationUrl });
  return { issuer: issuerUrl, clientIds, keys, retentionDays: retention.audit };
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

/** Creates the operators' workspace. Git's temporary folders are beside it, out of reach of callers' paths. */
function operatorsWorkspace(settings: Settings): Workspace {
  const { workspace } = settings;
  const folder = path.resolve(settings.process.dataDir);
  return new Workspace({
    path: path.resolve(workspace.root ?? path.join(folder, 'workspace')),
    views: path.join(folder, 'workspace-git'),
    remotes: platformOutbound(settings),
  });
}

const chainNode = ({ chain: { chainId, rpcUrl } }: Settings) =>
  new ChainNode({ chainId, url: rpcUrl });

const secretBox = ({ secrets }: Settings) => new SecretBox(secrets.keys);
