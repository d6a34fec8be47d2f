/** The RabbitMQ client library, installed only by projects that use RabbitMQ. */
import { optionalPackage } from '../../core/optional-package.ts'

export const rabbit = await optionalPackage('RabbitMQ needs', 'rabbitmq-client', () => import('rabbitmq-client'))
