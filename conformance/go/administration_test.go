package conformance

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
)

// N18: the admin client, over HTTPS, with the development certificate verified.
func administration(t *testing.T) (*admin.Client, context.Context) {
	t.Helper()
	certificate, err := os.ReadFile(os.Getenv("VORRANG_CERTIFICATE"))
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(certificate)
	transport := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}}
	text := fmt.Sprintf("Endpoint=sb://localhost:%s;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE",
		os.Getenv("VORRANG_HTTPS_PORT"))
	options := azcore.ClientOptions{Transport: transport, Retry: policy.RetryOptions{MaxRetries: -1}}
	client, err := admin.NewClientFromConnectionString(text, &admin.ClientOptions{ClientOptions: options})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	return client, ctx
}

func ok[T any](t *testing.T, result T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func pointer[T any](value T) *T { return &value }

func TestTheNamespaceIntroducesItself(t *testing.T) {
	client, ctx := administration(t)
	namespace, err := client.GetNamespaceProperties(ctx, nil)
	equal(t, ok(t, namespace, err).SKU, "Standard")
}

func TestAQueueFromBirthToDeath(t *testing.T) {
	client, ctx := administration(t)
	properties := admin.QueueProperties{LockDuration: pointer("PT30S"), MaxDeliveryCount: pointer(int32(7)), UserMetadata: pointer("a <note>")}
	created, err := client.CreateQueue(ctx, "admin-go", &admin.CreateQueueOptions{Properties: &properties})
	equal(t, *ok(t, created, err).LockDuration, "PT30S")
	if _, err := client.CreateQueue(ctx, "admin-go", nil); err == nil {
		t.Fatal("the second queue of that name was created")
	}
	queue, err := client.GetQueue(ctx, "admin-go", nil)
	found := *ok(t, queue, err)
	equal(t, *found.UserMetadata, "a <note>")
	found.MaxDeliveryCount = pointer(int32(9))
	updated, err := client.UpdateQueue(ctx, "admin-go", found.QueueProperties, nil)
	equal(t, *ok(t, updated, err).MaxDeliveryCount, 9)
	counts, err := client.GetQueueRuntimeProperties(ctx, "admin-go", nil)
	equal(t, ok(t, counts, err).TotalMessageCount, 0)
	pages, seen := client.NewListQueuesPager(&admin.ListQueuesOptions{MaxPageSize: 2}), 0
	for pages.More() {
		page, err := pages.NextPage(ctx)
		for _, queue := range ok(t, page, err).Queues {
			if queue.QueueName == "admin-go" {
				seen++
			}
		}
	}
	equal(t, seen, 1)
	_, err = client.DeleteQueue(ctx, "admin-go", nil)
	ok(t, 0, err)
	absent, err := client.GetQueue(ctx, "admin-go", nil)
	if ok(t, absent, err) != nil {
		t.Fatal("the queue is still there")
	}
}

func TestATopicWithSubscriptionAndRulesFromBirthToDeath(t *testing.T) {
	client, ctx := administration(t)
	topic, err := client.CreateTopic(ctx, "admin-go-topic", nil)
	ok(t, topic, err)
	rule := admin.RuleProperties{Name: "first", Filter: &admin.SQLFilter{Expression: "a = @a", Parameters: map[string]any{"@a": "x"}}}
	wanted := admin.SubscriptionProperties{DefaultRule: &rule, MaxDeliveryCount: pointer(int32(3))}
	subscription, err := client.CreateSubscription(ctx, "admin-go-topic", "sub", &admin.CreateSubscriptionOptions{Properties: &wanted})
	equal(t, *ok(t, subscription, err).MaxDeliveryCount, 3)
	read, err := client.GetRule(ctx, "admin-go-topic", "sub", "first", nil)
	equal(t, ok(t, read, err).Filter.(*admin.SQLFilter).Expression, "a = @a")

	correlation := &admin.CorrelationFilter{Subject: pointer("l"), ApplicationProperties: map[string]any{"n": "7"}}
	second, err := client.CreateRule(ctx, "admin-go-topic", "sub", &admin.CreateRuleOptions{Name: pointer("second"), Filter: correlation})
	equal(t, *ok(t, second, err).Filter.(*admin.CorrelationFilter).Subject, "l")
	second.Action = &admin.SQLAction{Expression: "SET x = 1"}
	changed, err := client.UpdateRule(ctx, "admin-go-topic", "sub", second.RuleProperties)
	equal(t, ok(t, changed, err).Action.(*admin.SQLAction).Expression, "SET x = 1")
	rules, err := client.NewListRulesPager("admin-go-topic", "sub", nil).NextPage(ctx)
	equal(t, len(ok(t, rules, err).Rules), 2)
	counts, err := client.GetTopicRuntimeProperties(ctx, "admin-go-topic", nil)
	equal(t, ok(t, counts, err).SubscriptionCount, 1)
	waiting, err := client.GetSubscriptionRuntimeProperties(ctx, "admin-go-topic", "sub", nil)
	equal(t, ok(t, waiting, err).TotalMessageCount, 0)
	gone, err := client.DeleteRule(ctx, "admin-go-topic", "sub", "second", nil)
	ok(t, gone, err)
	without, err := client.DeleteSubscription(ctx, "admin-go-topic", "sub", nil)
	ok(t, without, err)
	end, err := client.DeleteTopic(ctx, "admin-go-topic", nil)
	ok(t, end, err)
}
