import { area, variable, type SettingsOf } from '../environment/area.js';
import { boolean, count, textMatching, url } from '../environment/types.js';

const MAINNET_ID = 4217;
const TESTNET_ID = 42_431;

const chainId = () => count({ most: Number.MAX_SAFE_INTEGER });

const address = textMatching(/^0x[\da-fA-F]{40}$/, '0x and 40 hex digits');

/** More would be nobody's token: 18 are usual. */
const amount = textMatching(
  /^\d{1,30}(?:\.\d{1,18})?$/,
  'a number like 1 or 0.5, with at most 18 decimals',
);

export const chainSettings = area(
  'Chain',
  () => ({
    rpcUrl: variable(
      'CHAIN_RPC_URL',
      url('http', 'https').optional(),
      'JSON-RPC of a node of the chain, which is asked for the signatures of wallets that are contracts',
      { secret: true, otherwise: 'none: such wallets cannot sign in' },
    ),
    testnet: variable(
      'CHAIN_TESTNET',
      boolean.prefault('false'),
      `\`true\`: the chain is ${TESTNET_ID} in place of ${MAINNET_ID}`,
    ),
    usdcChainId: variable(
      'USDC_CHAIN_ID',
      chainId().optional(),
      "a chain that wallets' messages may name beside that one",
    ),
    platformToken: {
      address: variable(
        'PLATFORM_TOKEN_ADDRESS',
        address.optional(),
        'the contract of the token that some things are for the holders of; without it nobody is asked',
      ),
      rpcUrl: variable(
        'PLATFORM_TOKEN_RPC_URL',
        url('http', 'https').optional(),
        'JSON-RPC of a node of its chain',
        { secret: true, otherwise: '`CHAIN_RPC_URL`' },
      ),
      chainId: variable(
        'PLATFORM_TOKEN_CHAIN_ID',
        chainId().prefault(String(MAINNET_ID)),
        'and the id of that chain',
      ),
      threshold: variable(
        'PLATFORM_TOKEN_THRESHOLD',
        amount.prefault('1'),
        'how many whole tokens somebody holds who passes',
      ),
    },
  }),
  ({ platformToken: token, rpcUrl, testnet, usdcChainId }) => {
    const chainId = testnet ? TESTNET_ID : MAINNET_ID;
    return {
      rpcUrl,
      chainId,
      /** Those that a message to sign in may name. */
      signInChainIds: [chainId, ...(usdcChainId === undefined ? [] : [usdcChainId])],
      /** None where nobody is asked for it. */
      platformToken:
        token.address === undefined
          ? undefined
          : { ...token, address: token.address, rpcUrl: token.rpcUrl ?? rpcUrl },
    };
  },
);

export type ChainSettings = SettingsOf<typeof chainSettings>;
