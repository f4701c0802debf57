<?php

use Illuminate\Database\Migrations\Migration;
use Illuminate\Database\Schema\Blueprint;
use Illuminate\Support\Facades\DB;
use Illuminate\Support\Facades\Schema;

return new class extends Migration
{
    /**
     * webhooks: one row for one event of one source, from its receipt until its work is done.
     * received -> done, or dead after its last attempt; dead -> received when a person retries it.
     */
    public function up(): void
    {
        Schema::create('webhooks', function (Blueprint $table) {
            $table->id();
            // Binary: the usual collations hold evt_a and evt_A for one event, and the second is lost.
            $table->string('source', 64)->collation('utf8mb4_bin');
            $table->string('event_key')->collation('utf8mb4_bin');
            $table->string('type')->collation('utf8mb4_bin');
            // What the event is about. Events of one subject are worked off one after the other.
            $table->string('subject')->collation('utf8mb4_bin')->nullable();
            $table->string('state', 16)->default('received');
            $table->unsignedInteger('attempts')->default(0);
            $table->timestamp('next_at', 3)->useCurrent();
            $table->unsignedInteger('receipts')->default(1);
            $table->timestamp('received_at', 3)->useCurrent();
            $table->timestamp('finished_at', 3)->nullable();
            $table->text('error')->nullable();
            // This takes each event once. A look before the insert does not.
            $table->unique(['source', 'event_key']);
            $table->index(['state', 'next_at', 'id']);
            $table->index(['source', 'subject', 'state', 'id']);
            $table->index(['state', 'finished_at']);
        });
        // $table->binary() is a blob of 64 KiB.
        DB::statement('alter table webhooks add body mediumblob null');

        // The application's own data, which webhooks change.
        Schema::create('customers', function (Blueprint $table) {
            $table->string('id')->collation('utf8mb4_bin')->primary();
            $table->string('email')->default('');
            $table->bigInteger('version')->default(0);
            $table->bigInteger('paid_cents')->default(0);
        });
    }

    public function down(): void
    {
        Schema::dropIfExists('webhooks');
        Schema::dropIfExists('customers');
    }
};
