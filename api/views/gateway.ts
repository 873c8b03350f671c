import * as z from 'zod';
import type { ErrorCode } from '../../src/lib/error-codes.js';
import { shownAddress } from '../../src/money/chain/address.js';
import { networkName } from '../../src/money/chain/networks.js';
import type { ChainSettings } from '../../src/money/chain/settings.js';
import { PATH_USD } from '../../src/money/chain/tempo.js';
import type { DebitRefusal, PaymentSource } from '../../src/gateway/debits.js';
import type { ServedOrder } from '../../src/gateway/gateway.js';
import type { GatewayAction } from '../../src/gateway/gateway-action.js';
import { amountText, DECIMALS, formatAmount, formattedAmount } from '../../src/types/money.js';
import { answeredAddress } from './chain-address.js';
import { voucherAnswer, presentVoucher } from './vouchers.js';
import { holdSecondsOf, type PaymentSessionSettings } from '../../src/money/sessions/settings.js';
import { MAX_DEPOSIT, MIN_DEPOSIT } from '../../src/money/sessions/terms.js';

/** Currency of prices, whichever dollars pay them. */
const PRICED_IN = 'USD';

const CURRENCIES = { session: 'pathUSD', credits: 'USD' } as const satisfies Record<
  PaymentSource['method'],
  string
>;

const paymentTerms = z
  .strictObject({
    chainId: z.int(),
    network: z.string(),
    token: answeredAddress,
    decimals: z.int(),
    escrow: answeredAddress
      .nullable()
      .describe('Address of the escrow contract for deposits; null if deposits are not possible'),
    operator: answeredAddress.nullable(),
    treasury: answeredAddress.nullable(),
    holdSeconds: z.int().describe('Seconds from a hold until the payer can withdraw the rest'),
    minDeposit: formattedAmount,
    maxDeposit: formattedAmount,
  })
  .meta({ id: 'PaymentTerms' });

const shownOrNull = (address: string | undefined) =>
  address === undefined ? null : shownAddress(address);

export const presentPaymentTerms = (
  { chainId, escrow, operator, treasury }: ChainSettings,
  { holdMs }: Pick<PaymentSessionSettings, 'holdMs'>,
): z.infer<typeof paymentTerms> => ({
  chainId,
  network: networkName(chainId),
  token: shownAddress(PATH_USD),
  decimals: DECIMALS,
  escrow: shownOrNull(escrow),
  operator: shownOrNull(operator?.address),
  treasury: shownOrNull(treasury),
  holdSeconds: Number(holdSecondsOf(holdMs)),
  minDeposit: formatAmount(MIN_DEPOSIT),
  maxDeposit: formatAmount(MAX_DEPOSIT),
});

export const gatewayOffer = z
  .strictObject({
    plugins: z.array(
      z.strictObject({
        plugin: z.string(),
        action: z.string(),
        description: z.string(),
        price: formattedAmount,
        currency: z.literal(PRICED_IN),
        input: z.record(z.string(), z.unknown()).describe('A JSON schema'),
      }),
    ),
    payment: paymentTerms,
  })
  .meta({ id: 'GatewayOffer' });

export const presentAction = ({
  action,
  description,
  input,
  plugin,
  price,
}: GatewayAction): z.input<typeof gatewayOffer>['plugins'][number] => ({
  plugin,
  action,
  description,
  price: formatAmount(price),
  currency: PRICED_IN,
  input: z.toJSONSchema(input, { io: 'input' }),
});

export const gatewayOrder = z
  .object({
    plugin: z.string().min(1).max(64),
    action: z.string().min(1).max(64),
    input: z
      .record(z.string(), z.unknown())
      .default({})
      .describe('Input of the action, as described by `GET`'),
    maxPrice: amountText
      .optional()
      .describe('Most US dollars that the run may cost; required for actions of `x402`'),
  })
  .meta({ id: 'GatewayOrder' });

export const gatewayAnswer = z
  .strictObject({
    plugin: z.string(),
    action: z.string(),
    result: z.unknown(),
    payment: z.strictObject({
      method: z.enum(['session', 'credits']),
      amount: formattedAmount,
      currency: z.enum(Object.values(CURRENCIES)),
      voucher: voucherAnswer.optional(),
      remaining: formattedAmount.describe('Amount left to spend'),
    }),
  })
  .meta({ id: 'GatewayAnswer' });

export function presentServed(
  { action, plugin, price }: GatewayAction,
  { method }: PaymentSource,
  { remaining, result, voucher }: ServedOrder,
): z.input<typeof gatewayAnswer> {
  return {
    plugin,
    action,
    result,
    payment: {
      method,
      amount: formatAmount(price),
      currency: CURRENCIES[method],
      ...(voucher && { voucher: presentVoucher({ ...voucher, plugin, action }) }),
      remaining: formatAmount(remaining),
    },
  };
}

/** The reason why an action was not sold, and how to fix it. */
export const paymentRefusal = z
  .strictObject({
    error: z.string(),
    code: z.enum([
      'PAYMENT_REQUIRED',
      'SESSION_INVALID',
      'SESSION_CLOSED',
      'SESSION_EXHAUSTED',
      'CREDITS_EXHAUSTED',
      'PRICE_ABOVE_MAXIMUM',
    ] satisfies readonly ErrorCode[]),
    price: formattedAmount.optional(),
    currency: z.literal(PRICED_IN).optional(),
    remaining: formattedAmount.optional(),
    payment: paymentTerms.optional(),
  })
  .meta({ id: 'PaymentRefusal' });

const REFUSALS: Readonly<Record<DebitRefusal['code'], string>> = {
  SESSION_INVALID: 'The payment session is unknown, or belongs to another wallet: open a session',
  SESSION_CLOSED: 'The payment session is closed or closing: open another',
  SESSION_EXHAUSTED: 'The payment session has too little left: close it and open another',
  CREDITS_EXHAUSTED: 'You have too few credits: buy credits',
};

export function presentRefusal(
  { price }: GatewayAction,
  { code, remaining }: DebitRefusal,
): z.input<typeof paymentRefusal> {
  const refused = { error: REFUSALS[code], code };
  const isExhausted = code === 'SESSION_EXHAUSTED' || code === 'CREDITS_EXHAUSTED';
  if (!isExhausted || remaining === undefined) return refused;
  return { ...refused, price: formatAmount(price), remaining: formatAmount(remaining) };
}

export const presentPriceAboveMaximum = ({
  price,
}: GatewayAction): z.input<typeof paymentRefusal> => ({
  error: 'The price is above maxPrice: repeat the request with a higher maxPrice',
  code: 'PRICE_ABOVE_MAXIMUM',
  price: formatAmount(price),
  currency: PRICED_IN,
});

export const presentUnpaid = (
  { price }: GatewayAction,
  payment: z.input<typeof paymentTerms>,
): z.input<typeof paymentRefusal> => ({
  error:
    'Pay by a payment session (X-Session-Id and X-Wallet-Address), or sign in to pay by credits',
  code: 'PAYMENT_REQUIRED',
  price: formatAmount(price),
  currency: PRICED_IN,
  payment,
});
