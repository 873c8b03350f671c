import { proxyActivities } from '@temporalio/workflow';
import type { BillingActivities } from '../activities/billing.js';
import type { BillingReconciled } from '../src/billing/billing-reconciliation.js';
import * as retries from './retries.js';

/** Makes one pass over what the payment processor should have reported; the next pass handles the rest. */
export async function reconcileBilling(): Promise<BillingReconciled> {
  return proxyActivities<BillingActivities>(retries.billingPass).reconcileBilling();
}
